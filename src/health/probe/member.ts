import { request } from 'node:http';
import type { Clock } from '../../api/clock.ts';
import { MESH_POD, RELAY } from '../../api/names.ts';
import type { SocketAddress } from '../../api/socket-address.ts';
import { Attempt } from './attempt.ts';
import { CheckError } from './check-error.ts';
import type { ProbeProxy } from '../check.ts';

/** The way of a check through a member: its proxy, or its relay. */
type Way = 'pool' | 'relay';

/** A member that has been checked is not checked again for this time. */
const INTERVAL_MS = 100;
const TIMEOUT_MS = 1000;

/** A member that did not respond has this time to connect to the tailnet once it responds again. */
const CONNECTS_WITHIN_MS = 30_000;

/** Whether members can carry checks. */
export interface MemberChecks {
  /**
   * Whether a member can carry checks now. After it did not respond, it can once an endpoint is reached through it, or 30 s
   * after it responds again. Calls that come together share a check, which never begins before they do.
   */
  isRunning(member: ProbeProxy, way: Way): Promise<boolean>;
  /** An endpoint was reached through a member, or the member did not respond. */
  setReached(member: ProbeProxy, way: Way, isReached: boolean): void;
  /** Cancels its timers; checks that wait for one are never made. */
  close(): void;
}

type Recent = { next?: Promise<boolean>; start?: () => void; readonly cancel: () => void };

/** Checks members no more often than every 100 ms. */
export function createMemberChecks(clock: Clock): MemberChecks {
  const returning = new ReturningMembers(clock);
  /** The members that were checked in the last 100 ms, with the check that is to follow, if any. */
  const recent = new Map<string, Recent>();
  const responds = (member: ProbeProxy, way: Way): Promise<boolean> => {
    const key = `${way} ${member.proxy.address} ${member.proxy.port} ${member.pod}`;
    const before = recent.get(key);
    if (before) {
      return (before.next ??= new Promise(resolve => {
        before.start = () => resolve(responds(member, way));
      }));
    }
    const cancel = clock.after(INTERVAL_MS, () => {
      recent.delete(key);
      now.start?.();
    });
    const now: Recent = { cancel };
    recent.set(key, now);
    return checkMember(clock, member, way);
  };
  return {
    isRunning: async (member, way) => {
      if (await responds(member, way)) return returning.isConnected(member, way);
      returning.set(member, way, false);
      return false;
    },
    setReached: (member, way, isReached) => returning.set(member, way, isReached),
    close: () => recent.forEach(({ cancel }) => cancel()),
  };
}

/** Members that did not respond, and through which no endpoint was reached since: by name, which a new pod inherits. */
class ReturningMembers {
  readonly #clock: Clock;
  /** When each responded again, if it did. */
  readonly #respondsSince = new Map<string, number | undefined>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set({ name }: ProbeProxy, way: Way, isReached: boolean): void {
    if (isReached) this.#respondsSince.delete(`${way} ${name}`);
    else this.#respondsSince.set(`${way} ${name}`, undefined);
  }

  /** Whether a member that responds has connected to the tailnet, or should have. */
  isConnected({ name }: ProbeProxy, way: Way): boolean {
    const key = `${way} ${name}`;
    if (!this.#respondsSince.has(key)) return true;
    const now = this.#clock.now();
    const since = this.#respondsSince.get(key) ?? now;
    this.#respondsSince.set(key, since);
    return now - since >= CONNECTS_WITHIN_MS;
  }
}

async function checkMember(clock: Clock, { proxy, pod }: ProbeProxy, way: Way): Promise<boolean> {
  const attempt = new Attempt(clock);
  const at = (port: number) => ({ address: pod ?? '', port });
  const isOk = (status: number) => status === 200;
  const meshdIsConnected = () => get(attempt, at(MESH_POD.ports.metrics), '/healthz', isOk);
  const relayIsReady = () => get(attempt, at(RELAY.ports.http), '/readyz', isOk);
  // To a request that is not for a proxy, meshd responds with 400.
  const proxyResponds = () => get(attempt, proxy, '/', () => true);
  const requests =
    way === 'relay'
      ? [meshdIsConnected(), relayIsReady()]
      : pod === undefined
        ? [proxyResponds()]
        : [meshdIsConnected(), proxyResponds()];
  const all = Promise.all(requests).then(() => undefined);
  return attempt.within(TIMEOUT_MS, 'the member does not respond', all).then(
    () => true,
    () => false,
  );
}

function get(
  attempt: Attempt,
  { address, port }: SocketAddress,
  path: string,
  isGood: (status: number) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = attempt.own(request({ host: address, port, path, agent: false }));
    sent.once('response', ({ statusCode = 0 }) => {
      if (isGood(statusCode)) resolve();
      else reject(new CheckError('unreached', `the member responded with ${statusCode}`));
    });
    sent.once('error', reject);
    sent.end();
  });
}
