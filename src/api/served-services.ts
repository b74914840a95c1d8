import type { IgnoredLines } from './relay-targets.ts';
import { parseSocketAddress } from './socket-address.ts';

/** The key of a relay's ConfigMap that has the VIP services. */
export const SERVICES_KEY = 'services';

/** A VIP service that mesh pods serve. */
export type ServedService = {
  /** In the form of the tailnet, such as `svc:web`. */
  readonly name: string;
  /** The port of the service. */
  readonly port: number;
  /** Where its connections go: a device of the tailnet, or an address outside of it. */
  readonly via: 'mesh' | 'direct';
  /** The address and port of the target. */
  readonly target: string;
  /** Whether the tailnet may send connections to this pool: the target is healthy. */
  readonly isAdvertised: boolean;
};

/** The name of a service in the tailnet, which may be listed without `svc:`. */
export function fullServiceName(name: string): string {
  return name.startsWith('svc:') ? name : `svc:${name}`;
}

/** The version of the text of services, by which operator and relay compare it. */
export { targetsVersion as servicesVersion } from './relay-targets.ts';

/** The most services of a tailnet. */
export const MAX_SERVED = 1000;

const LINE = /^(svc:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?) ([1-9]\d{0,4}) (mesh|direct) (\S{1,64}) (on|off)$/;

/**
 * Parses the VIP services of a tailnet, one `<name> <port> mesh|direct <address>:<port> on|off` per line. A line that is not
 * valid, repeats a name, or is beyond the limit is ignored and reported.
 */
export function parseServices(
  text: string,
  report: (ignored: IgnoredLines) => void = () => undefined,
): readonly ServedService[] {
  const services = new Map<string, ServedService>();
  let count = 0;
  let first = '';
  const ignore = (index: number, why: string) => {
    if (count++ === 0) first = `line ${index + 1} ${why}`;
  };
  for (const [index, line] of text.split('\n', 2 * MAX_SERVED).entries()) {
    if (line === '') continue;
    const [, name = '', digits = '', via, target = '', state] = LINE.exec(line) ?? [];
    const port = Number(digits);
    const isValid = port <= 65_535 && parseSocketAddress(target) !== undefined;
    if (!isValid || (via !== 'mesh' && via !== 'direct')) ignore(index, 'is not a VIP service');
    else if (services.has(name)) ignore(index, 'repeats a name');
    else if (services.size === MAX_SERVED) ignore(index, `is beyond ${MAX_SERVED} services`);
    else services.set(name, { name, port, via, target, isAdvertised: state === 'on' });
  }
  if (count > 0) report({ count, first });
  return [...services.values()];
}

/** The text of VIP services, sorted by name: equal for equal services. */
export function formatServices(services: readonly ServedService[]): string {
  const lines = services.map(
    ({ name, port, via, target, isAdvertised }) =>
      `${name} ${port} ${via} ${target} ${isAdvertised ? 'on' : 'off'}\n`,
  );
  return lines.sort().join('');
}
