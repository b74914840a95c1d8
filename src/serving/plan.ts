import { isDeepStrictEqual } from 'node:util';
import type { ServedService } from '../api/served-services.ts';
import type { ServeConfig } from './local-api.ts';

/** A service that is no longer wanted, and still served until a time. */
type Draining = { readonly service: ServedService; readonly until: number };

/** Everything that decides what a tailscaled is to serve. */
export type Input = {
  readonly wanted: readonly ServedService[];
  /** What the last plan served, by name. */
  readonly served: ReadonlyMap<string, ServedService>;
  readonly draining: ReadonlyMap<string, Draining>;
  /** Whether the pod ends: nothing is advertised. */
  readonly isEnding: boolean;
  readonly now: number;
};

/** What a tailscaled is to serve. */
export type Plan = {
  /** By name, with those that drain. */
  readonly served: ReadonlyMap<string, ServedService>;
  /** The names to advertise, sorted. */
  readonly advertised: readonly string[];
  readonly draining: ReadonlyMap<string, Draining>;
};

/** Before the first plan. */
export const NOTHING_SERVED: Plan = { served: new Map(), advertised: [], draining: new Map() };

/**
 * How long a service is served after it is withdrawn. The control server has chosen another host by then: about 15 s, as the
 * vendor's own components assume.
 */
export const DRAIN_MS = 20_000;

/*
 * A service               is served                 is advertised
 * wanted                  toward its target         if its target is healthy, and the pod does not end
 * no longer wanted        20 s more, as before      no
 * unknown, in tailscaled  no                        no
 */
export function plan({ wanted, served: before, draining: ending, isEnding, now }: Input): Plan {
  const names = new Set(wanted.map(({ name }) => name));
  const left = [...before].filter(([name]) => !names.has(name));
  const draining = new Map(
    left
      .map(([name, service]) => [name, ending.get(name) ?? { service, until: now + DRAIN_MS }] as const)
      .filter(([, { until }]) => now < until),
  );
  const drained = [...draining].map(([name, { service }]) => [name, service] as const);
  const served = new Map([...wanted.map(service => [service.name, service] as const), ...drained]);
  const advertised = isEnding ? [] : wanted.filter(({ isAdvertised }) => isAdvertised);
  return { served, advertised: advertised.map(({ name }) => name).sort(), draining };
}

/** A call that leads a tailscaled to what it is to serve. */
export type Step =
  | { readonly do: 'advertise'; readonly names: readonly string[] }
  | { readonly do: 'serve'; readonly config: ServeConfig };

/** What a tailscaled serves, as it was read. */
export type Observed = { readonly config: unknown; readonly advertised: readonly string[] };

/**
 * The calls from what a tailscaled serves to what it is to serve, in their order: a service is withdrawn before it is no longer
 * served, and served before it is advertised. What others have configured is removed.
 */
export function stepsTo(
  { served, advertised }: Pick<Plan, 'served' | 'advertised'>,
  observed: Observed,
  forwards: ReadonlyMap<string, string>,
): readonly Step[] {
  const config = configOf(served, forwards);
  const kept = observed.advertised.filter(name => advertised.includes(name));
  const ready = advertised.filter(name => config.Services?.[name] !== undefined);
  const isServing = isDeepStrictEqual(observed.config ?? {}, config);
  const steps: Step[] = [];
  if (kept.length < observed.advertised.length) steps.push({ do: 'advertise', names: kept });
  if (!isServing) steps.push({ do: 'serve', config });
  if (!isDeepStrictEqual([...kept].sort(), ready)) steps.push({ do: 'advertise', names: ready });
  return steps;
}

/** The configuration; a device without a hop is not served. */
function configOf(
  served: ReadonlyMap<string, ServedService>,
  forwards: ReadonlyMap<string, string>,
): ServeConfig {
  const services = [...served.values()].flatMap(({ name, port, via, target }) => {
    const TCPForward = via === 'direct' ? target : forwards.get(target);
    return TCPForward === undefined ? [] : [[name, { TCP: { [port]: { TCPForward } } }] as const];
  });
  return services.length === 0 ? {} : { Services: Object.fromEntries(services) };
}

/** The devices toward which hops are needed. */
export function hopTargets(served: ReadonlyMap<string, ServedService>): ReadonlySet<string> {
  return new Set([...served.values()].filter(({ via }) => via === 'mesh').map(({ target }) => target));
}
