import { TRUST_BYTES } from '../../api/shares.ts';
import { caRefIn, caRefText, formatTrust, lineOf, othersOf } from '../../api/trust.ts';
import type { CaRef, Trust, TrustedCa } from '../../api/trust.ts';
import { TrustContent } from './content.ts';

/** What decides the data of the ConfigMap `mesh-trust`. */
export type Input = {
  /** The caRefs of all MeshEndpoints, each once. */
  readonly refs: readonly CaRef[];
  /** What has been read for some of them now, by `caRefText`; without those whose ConfigMap cannot be read. */
  readonly found: Trust;
  /** What is published. */
  readonly published: Trust;
  /** Published references that no MeshEndpoints has, but one had until a short time ago. */
  readonly unreferenced: ReadonlySet<string>;
};

/** For the lines of namespaces, beside the shares. A ConfigMap may have 1 MiB. */
const LINES_BYTES = 100 * 1024;

/*
 * A reference                            what is published for it
 * whose ConfigMap has been read now      that, or what is published already where there is no room for more
 * whose ConfigMap has not been read now  what is published already
 * that was removed a short time ago      what is published already: extension servers may see its removal later than this
 *
 * All of it must fit into one ConfigMap. Where it does not, namespaces share the bytes: those of each are in an order of its
 * own, and of all namespaces, those come first before which their namespace has least. So a namespace has at least an equal
 * share, and what others do not use of theirs goes to those that need more, equally, and from them back again:
 *
 *   a     ####|####|####|##
 *   b     ####|#
 *   c     ####|####|###
 *   turn   1    2    3    4: what does not fit is left out, here of a
 *
 * The order within a namespace: what is published, small before large; then what is new or has grown; then references that
 * have no certificates, each of which needs a line. So what is published within the share of its namespace stays.
 */

/** Plans what the ConfigMap has. */
export function planTrust(gathered: Input): Trust {
  const { refs, found, published, unreferenced } = gathered;
  const texts = refs.map(caRefText).sort();
  const content = new TrustContent();
  for (const text of texts) {
    const ca = found.get(text) ?? published.get(text);
    if (ca) content.set(text, ca);
  }
  const planned = content.bytes <= TRUST_BYTES ? content : divided(texts, gathered);
  for (const text of [...unreferenced].sort()) {
    const ca = published.get(text);
    if (ca) planned.set(text, ca, TRUST_BYTES);
  }
  for (const namespace of withoutRoom(texts, planned.trust, gathered)) {
    planned.set(othersOf(namespace), NO_ROOM, TRUST_BYTES + LINES_BYTES);
  }
  return planned.trust;
}

const NO_ROOM: TrustedCa = {
  is: 'missing',
  reason: 'TooManyTlsSettings',
  why: {
    text: `the certificates of tls.caRef in this namespace exceed its share of the ${TRUST_BYTES / 1024} KB of all namespaces`,
    fix: 'refer to bundles with fewer certificates, or to equal ones',
  },
};

/** Namespaces with a reference for which there is no room, as far as it is known. */
function withoutRoom(texts: readonly string[], planned: Trust, { found, published }: Input): Set<string> {
  const left = texts.filter(text => {
    if (planned.has(text)) return false;
    return found.has(text) || published.has(othersOf(caRefIn(text).namespace));
  });
  return new Set(left.map(text => caRefIn(text).namespace));
}

/** What a reference may have at a turn of its namespace. */
type Entry = {
  readonly text: string;
  /** The first that fits counts. */
  readonly versions: readonly [TrustedCa, ...TrustedCa[]];
  /** Its place in the order within its namespace. */
  readonly order: number;
};

/** An entry, and what its namespace has with it and with all entries before it. */
type Turn = Entry & { readonly bytes: number };

function divided(texts: readonly string[], gathered: Input): TrustContent {
  const { found } = gathered;
  const byNamespace = new Map<string, Entry[]>();
  for (const text of texts) {
    const { namespace } = caRefIn(text);
    const entries = byNamespace.get(namespace) ?? [];
    entries.push(...entriesOf(text, gathered));
    byNamespace.set(namespace, entries);
  }
  const turns = [...byNamespace.values()].flatMap(turnsOf).sort((one, other) => one.bytes - other.bytes);
  const content = new TrustContent();
  for (const { text, versions } of turns) versions.some(version => content.set(text, version, TRUST_BYTES));
  for (const [text, ca] of content.trust) {
    const now = found.get(text);
    const isOutdated = ca.is === 'found' && now?.is === 'found' && now.pem !== ca.pem;
    if (isOutdated) content.set(text, { ...ca, isOutdated });
  }
  return content;
}

function turnsOf(entries: readonly Entry[]): readonly Turn[] {
  const sorted = entries
    .map(entry => ({ ...entry, size: sizeOf(entry.versions[0]) }))
    .sort((one, other) => one.order - other.order || one.size - other.size);
  const own = new TrustContent();
  let bytes = 0;
  return sorted.map(entry => {
    own.set(entry.text, entry.versions[0]);
    // Never less than before: what has shrunk gives room to nothing that comes first.
    bytes = Math.max(bytes, own.bytes);
    return { ...entry, bytes };
  });
}

function entriesOf(text: string, { found, published }: Input): readonly Entry[] {
  const now = found.get(text);
  const before = published.get(text);
  const ca = now ?? before;
  if (!ca) return [];
  // Its owner has removed it, so it must not stay.
  if (ca.is !== 'found') return [{ text, versions: [ca], order: 2 }];
  if (before?.is !== 'found') return [{ text, versions: [ca], order: 1 }];
  if (sizeOf(ca) <= sizeOf(before)) return [{ text, versions: [ca, before], order: 0 }];
  return [
    { text, versions: [before], order: 0 },
    { text, versions: [ca], order: 1 },
  ];
}

function sizeOf(ca: TrustedCa): number {
  return ca.is === 'found' ? ca.pem.length : lineOf(ca).length;
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
