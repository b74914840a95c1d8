import { caRefText, formatTrust } from '../api/trust.ts';
import type { CaRef, Trust, TrustedCa } from '../api/trust.ts';

/** What decides the data of the ConfigMap `mesh-trust`. */
export type Gathered = {
  /** The caRefs of all MeshEndpoints, each once. */
  readonly refs: readonly CaRef[];
  /** What has been read for them now, by `caRefText`; without those whose ConfigMap cannot be read. */
  readonly found: Trust;
  /** What is published. */
  readonly published: Trust;
  /** Published references that no MeshEndpoints has, but one had until a short time ago. */
  readonly unreferenced: ReadonlySet<string>;
};

/** A ConfigMap may have 1 MiB, with its metadata. */
export const MAX_BYTES = 900 * 1024;

/*
 * A reference                            what is published for it
 * whose ConfigMap has been read          that
 * whose ConfigMap cannot be read now     what is published already
 * that was removed a short time ago      what is published already: extension servers may see its removal later than this
 *
 * All of it must fit into one ConfigMap. Published certificates go first, so that new ones never displace them, and those that
 * only wait for their removal go last.
 */

/** Plans what the ConfigMap has. */
export function planTrust({ refs, found, published, unreferenced }: Gathered): Trust {
  const texts = refs.map(caRefText).sort();
  const isPublished = (text: string) => published.get(text)?.is === 'found';
  const ordered = [
    ...texts.filter(isPublished),
    ...texts.filter(text => !isPublished(text)),
    ...[...unreferenced].sort(),
  ];
  const planned = new Map<string, TrustedCa>();
  const bundles = new Set<string>();
  let bytes = 0;
  const add = (text: string, ca: TrustedCa): boolean => {
    const pem = ca.is === 'found' && !bundles.has(ca.pem) ? ca.pem : undefined;
    const more = sizeOf(text, ca) + (pem?.length ?? 0);
    if (bytes + more > MAX_BYTES) return false;
    bytes += more;
    if (pem !== undefined) bundles.add(pem);
    planned.set(text, ca);
    return true;
  };
  for (const text of ordered) {
    const ca = found.get(text) ?? published.get(text);
    if (ca && !add(text, ca)) add(text, TOO_MUCH);
  }
  return planned;
}

const TOO_MUCH: TrustedCa = {
  is: 'missing',
  reason: 'TooManyTlsSettings',
  why: `the certificates of all MeshEndpoints with tls.caRef exceed ${MAX_BYTES / 1024} KB: refer to bundles with fewer certificates, or to equal ones`,
};

/** More than its line, and the key of its certificates, take. */
function sizeOf(text: string, ca: TrustedCa): number {
  return text.length + (ca.is === 'found' ? 0 : Buffer.byteLength(ca.why)) + 160;
}

/** Whether the data of the ConfigMap is as planned. */
export function isAsPlanned(data: Readonly<Record<string, unknown>>, trust: Trust): boolean {
  const planned = formatTrust(trust);
  const isOurs = (key: string) => /^[0-9a-f]{64}$/.test(key);
  return (
    Object.entries(planned).every(([key, text]) => data[key] === text) &&
    Object.keys(data).every(key => !isOurs(key) || Object.hasOwn(planned, key))
  );
}
