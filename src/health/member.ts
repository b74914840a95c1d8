import { request } from 'node:http';
import type { Clock } from '../api/clock.ts';
import { MESH_POD, RELAY } from '../api/names.ts';
import type { SocketAddress } from '../api/socket-address.ts';
import { Attempt } from './attempt.ts';
import { CheckError } from './check-error.ts';
import type { Member } from './target.ts';

/** The way of a check through a member: its proxy, or its relay. */
type Way = 'pool' | 'relay';

/** A member that has been checked is not checked again for this time. */
const INTERVAL_MS = 100;
const TIMEOUT_MS = 1000;

/** Whether members can carry checks. */
export interface MemberChecks {
  /** Whether a member can carry checks now. Calls that come together share a check, which never begins before they do. */
  isRunning(member: Member, way: Way): Promise<boolean>;
  /** Cancels its timers; checks that wait for one are never made. */
  close(): void;
}

type Recent = { next?: Promise<boolean>; start?: () => void; readonly cancel: () => void };

/** Checks members no more often than every 100 ms. */
export function createMemberChecks(clock: Clock): MemberChecks {
  /** The members that were checked in the last 100 ms, with the check that is to follow, if any. */
  const recent = new Map<string, Recent>();
  const isRunning = (member: Member, way: Way): Promise<boolean> => {
    const key = `${way} ${member.proxy.address} ${member.proxy.port} ${member.pod}`;
    const before = recent.get(key);
    if (before) {
      return (before.next ??= new Promise(resolve => {
        before.start = () => resolve(isRunning(member, way));
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
  const close = () => recent.forEach(({ cancel }) => cancel());
  return { isRunning, close };
}

async function checkMember(clock: Clock, { proxy, pod }: Member, way: Way): Promise<boolean> {
  const attempt = new Attempt(clock);
  const at = (port: number) => ({ address: pod ?? '', port });
  const isOk = (status: number) => status === 200;
  const meshd = () => get(attempt, at(MESH_POD.ports.metrics), '/healthz', isOk);
  const relay = () => get(attempt, at(RELAY.ports.http), '/readyz', isOk);
  // To a request that is not for a proxy, meshd responds with 400.
  const answers = () => get(attempt, proxy, '/', () => true);
  const requests =
    way === 'relay' ? [meshd(), relay()] : pod === undefined ? [answers()] : [meshd(), answers()];
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
