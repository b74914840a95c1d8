import { createHash } from 'node:crypto';
import type { Kinds, MeshEndpoint } from './generated/types.ts';
import { discovers, endpointsOf } from './objects/endpoints.ts';
import type { Why } from './problem.ts';

/*
 * The data of the ConfigMap `mesh-trust`, which the operator writes and the extension server reads:
 *
 *   references       a line for each ConfigMap and key that tls.caRef names:
 *                    <namespace>/<name>/<key> <sha256>           its certificates are under this key
 *                    <namespace>/<name>/<key> <sha256> outdated  as above, and there is no room for newer ones
 *                    <namespace>/<name>/<key> <reason> <text>    it has none, and why: what is wrong, " | ", and the fix
 *                    <namespace>// <reason> <text>               why others of the namespace have no line
 *   <sha256>         PEM; once for all references to the same certificates
 */

/** A key of a ConfigMap, as tls.caRef of a MeshEndpoints names it. */
export type CaRef = { readonly namespace: string; readonly name: string; readonly key: string };

/** Why a caRef has no certificates. */
export type MissingCa = {
  /** unread: the operator has not read its ConfigMap yet. */
  readonly is: 'missing' | 'unread';
  readonly reason: (typeof REASONS)[number];
  readonly why: Why;
};

/** The certificates of a caRef. */
export type TrustedCa = FoundCa | MissingCa;

type FoundCa = {
  readonly is: 'found';
  readonly pem: string;
  /** Its ConfigMap has newer ones, for which there is no room. */
  readonly isOutdated?: true;
};

const REASONS = ['CertificateNotFound', 'InvalidCertificate', 'TooManyTlsSettings'] as const;

const REFERENCES_KEY = 'references';
const OUTDATED = 'outdated';
const BEFORE_FIX = ' | ';

/** A caRef as one text. */
export function caRefText({ namespace, name, key }: CaRef): string {
  return `${namespace}/${name}/${key}`;
}

/** A text for those references of a namespace for which there is no room. */
export function othersOf(namespace: string): string {
  return caRefText({ namespace, name: '', key: '' });
}

/** The caRef of a text. */
export function caRefIn(text: string): CaRef {
  const [namespace = '', name = '', key = ''] = text.split('/');
  return { namespace, name, key };
}

/** The caRef of an endpoint; undefined where it has none, or accepts any certificate. */
export function caRefOf(
  { metadata }: Kinds['MeshEndpoints'],
  { tls }: Pick<MeshEndpoint, 'tls'>,
): CaRef | undefined {
  if (!tls?.caRef || tls.insecureSkipVerify) return undefined;
  const { name, key } = tls.caRef;
  return { namespace: metadata.namespace ?? '', name, key };
}

/** The caRefs of a MeshEndpoints, each once. */
export function caRefsOf(object: Kinds['MeshEndpoints']): readonly CaRef[] {
  // Certificates for discovered endpoints are read before the first of them exists.
  const template = discovers(object) ? [object.spec.endpointTemplate ?? {}] : [];
  const refs = [...endpointsOf(object), ...template].flatMap(endpoint => caRefOf(object, endpoint) ?? []);
  return [...new Map(refs.map(ref => [caRefText(ref), ref])).values()];
}

/** What is trusted, by `caRefText`. */
export type Trust = ReadonlyMap<string, TrustedCa>;

/** The trust in the data of the ConfigMap; lines of another form are ignored. */
export function parseTrust(data: Readonly<Record<string, string>>): Trust {
  const trust = new Map<string, TrustedCa>();
  for (const line of (data[REFERENCES_KEY] ?? '').split('\n')) {
    const [, ref = '', what = '', rest = ''] = /^(\S+) (\S+)(?: (.+))?$/.exec(line) ?? [];
    const [text = '', fix] = rest.split(BEFORE_FIX);
    const reason = REASONS.find(each => each === what);
    const pem = data[what];
    if (reason) trust.set(ref, { is: 'missing', reason, why: { text, ...(fix !== undefined && { fix }) } });
    else if (pem !== undefined && what !== REFERENCES_KEY) {
      trust.set(ref, { is: 'found', pem, ...(text === OUTDATED && { isOutdated: true }) });
    }
  }
  return trust;
}

/** The data of the ConfigMap, equal for equal trust. */
export function formatTrust(trust: Trust): Readonly<Record<string, string>> {
  const bundles = new Map<string, string>();
  const lines = [...trust].map(([ref, ca]) => {
    if (ca.is !== 'found') return `${ref} ${ca.reason} ${lineOf(ca)}\n`;
    const hash = createHash('sha256').update(ca.pem).digest('hex');
    bundles.set(hash, ca.pem);
    return `${ref} ${hash}${ca.isOutdated ? ` ${OUTDATED}` : ''}\n`;
  });
  const sorted = [...bundles].sort(([one], [other]) => (one < other ? -1 : 1));
  return { ...Object.fromEntries(sorted), [REFERENCES_KEY]: lines.sort().join('') };
}

/** Why a caRef has no certificates, as its line has it. */
export function lineOf({ why: { text, fix } }: MissingCa): string {
  const parts = [text, ...(fix === undefined ? [] : [fix])];
  return parts.map(part => part.replaceAll('\n', ' ').replaceAll(BEFORE_FIX, ' ')).join(BEFORE_FIX);
}
