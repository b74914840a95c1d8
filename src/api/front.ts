import { canonicalIP, familyOf, isAddressOrRange } from './ip.ts';
import { isFullName } from './names.ts';
import type { IgnoredLines } from './relay-targets.ts';

/** The keys of a relay's ConfigMap that have whom the front of its mesh pod serves, and toward what. */
export const FRONT_KEYS = { callers: 'callers', destinations: 'destinations' } as const;

/** Whom the front of a mesh pod serves: addresses, or ranges of addresses. */
export type Callers = { readonly addresses: ReadonlySet<string>; readonly ranges: readonly string[] };

/** Where callers of the front may connect to: `address:port`, and `name:port` for the names of devices. */
export type Destinations = ReadonlySet<string>;

/** A device of a tailnet with the ports that may be dialled. */
export type Destination = {
  readonly address: string;
  /** The full name by which Envoys dial it too. */
  readonly name: string | undefined;
  readonly ports: readonly number[];
};

/** The text of a key where everyone, or everything in the tailnet, is admitted. */
export const ANY = 'any';

const MAX_LINES = 100_000;

/** Parses callers, one address or range per line; undefined where all are served. Other lines are ignored and reported. */
export function parseCallers(
  text: string,
  report: (ignored: IgnoredLines) => void = () => undefined,
): Callers | undefined {
  if (text.trim() === ANY) return undefined;
  const addresses = new Set<string>();
  const ranges: string[] = [];
  eachLine(text, report, line => {
    if (familyOf(line) !== undefined) addresses.add(canonicalIP(line));
    else if (isAddressOrRange(line)) ranges.push(line);
    else return 'is neither an address nor a range of addresses';
    return undefined;
  });
  return { addresses, ranges };
}

/** The text of callers, sorted: equal for equal callers. */
export function formatCallers(callers: readonly string[]): string {
  const distinct = [...new Set(callers.map(canonicalIP))].sort();
  return distinct.map(caller => `${caller}\n`).join('');
}

/**
 * Parses destinations, one `<address> <name or -> <port>[,<port>]` per line; undefined where every device may be dialled. Other
 * lines are ignored and reported.
 */
export function parseDestinations(
  text: string,
  report: (ignored: IgnoredLines) => void = () => undefined,
): Destinations | undefined {
  if (text.trim() === ANY) return undefined;
  const found = new Set<string>();
  eachLine(text, report, line => {
    const [address = '', name = '', list = '', ...others] = line.split(' ');
    const ports = list.split(',').map(Number);
    const isName = name === '-' || isFullName(name);
    const isValid = familyOf(address) !== undefined && isName && others.length === 0 && ports.every(isPort);
    if (!isValid) return 'is not a destination';
    for (const port of ports) {
      found.add(destinationText(address, port));
      if (name !== '-') found.add(destinationText(name, port));
    }
    return undefined;
  });
  return found;
}

/** The text of destinations, sorted: equal for equal destinations. */
export function formatDestinations(destinations: readonly Destination[]): string {
  const lines = destinations.map(({ address, name = '-', ports }) => {
    const sorted = [...new Set(ports)].sort((one, other) => one - other);
    return `${canonicalIP(address)} ${name.toLowerCase()} ${sorted.join(',')}\n`;
  });
  return lines.sort().join('');
}

/** A host and port as destinations have them: equal for all spellings. */
export function destinationText(host: string, port: number): string {
  return `${familyOf(host) === undefined ? host.toLowerCase() : canonicalIP(host)} ${port}`;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

/** Calls `use` for each line, which returns what is wrong with it. */
function eachLine(
  text: string,
  report: (ignored: IgnoredLines) => void,
  use: (line: string) => string | undefined,
): void {
  let count = 0;
  let first = '';
  for (const [index, line] of text.split('\n', MAX_LINES).entries()) {
    const problem = line === '' ? undefined : use(line);
    if (problem === undefined) continue;
    if (count++ === 0) first = `line ${index + 1} ${problem}`;
  }
  if (count > 0) report({ count, first });
}
