import { createHash } from 'node:crypto';
import { parseSocketAddress } from './socket-address.ts';
import type { SocketAddress } from './socket-address.ts';

/** The key of a relay's ConfigMap that has its targets. */
export const TARGETS_KEY = 'targets';

/** Lines of relay targets that could not be used: how many, and what is wrong with the first. */
export type IgnoredLines = { readonly count: number; readonly first: string };

/** Each port once. */
const MAX_LINES = 65_535;

/**
 * Parses the targets of a relay, one `<port> <address>:<port>` per line, by port. A line that is not valid or repeats a port is
 * ignored and reported.
 */
export function parseTargets(
  text: string,
  report: (ignored: IgnoredLines) => void = () => undefined,
): Map<number, SocketAddress> {
  const targets = new Map<number, SocketAddress>();
  let count = 0;
  let first = '';
  const ignore = (index: number, why: string) => {
    if (count++ === 0) first = `line ${index + 1} ${why}`;
  };
  for (const [index, line] of text.split('\n', MAX_LINES).entries()) {
    if (line === '') continue;
    const [, digits = '', address = ''] = /^([1-9]\d{0,4}) (\S{1,64})$/.exec(line) ?? [];
    const port = Number(digits);
    const target = parseSocketAddress(address);
    if (target === undefined || port > 65_535) ignore(index, 'is not a port and an address with a port');
    else if (targets.has(port)) ignore(index, 'repeats a port');
    else targets.set(port, target);
  }
  if (count > 0) report({ count, first });
  return targets;
}

/** The text of relay targets (`address:port`) by port, sorted by port: equal for equal targets. */
export function formatTargets(targets: ReadonlyMap<number, string>): string {
  const lines = [...targets].sort(([one], [other]) => one - other);
  return lines.map(([port, target]) => `${port} ${target}\n`).join('');
}

/** The version of the text of relay targets, by which operator and relay compare it. */
export function targetsVersion(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
