import type { Clock } from '../../api/clock.ts';
import { Attempt } from './attempt.ts';
import { checkErrorOf, seconds } from './check-error.ts';
import { createGrpcHealth } from './grpc.ts';
import type { GrpcHealth } from './grpc.ts';
import { checkHttp } from './http.ts';
import { createMemberChecks } from './member.ts';
import type { Check, ConfirmMembers, ProbeProxy, ProbeProxies, Probe, ProbeResult } from '../check.ts';
import { createTls } from './tls.ts';
import type { StartTls } from './tls.ts';
import { connectDirect, openTunnel } from './tunnel.ts';
import { createUdpChecks } from './udp.ts';
import type { CheckUdp } from './udp.ts';

export type ProbeDeps = {
  readonly members: ProbeProxies;
  /** Undefined for proxies that others run. */
  readonly confirmMembers?: ConfirmMembers;
  readonly clock: Clock;
};

const ABORTED: ProbeResult = { is: 'unknown', why: 'the check was aborted' };

/** A probe with what its checks share. */
export type OpenProbe = { readonly probe: Probe; readonly close: () => void };

/** Creates a probe: through the members of a pool in turn, or directly. */
export function createProbe({ members, confirmMembers, clock }: ProbeDeps): OpenProbe {
  const memberChecks = createMemberChecks(clock);
  const shared: Shared = { startTls: createTls(), grpc: createGrpcHealth(), checkUdp: createUdpChecks() };
  const turns = new Map<string, number>();
  /** When an endpoint was reached through a pool for the last time, by the name of its MeshTailnet. */
  const reachedAt = new Map<string, number>();

  const nextMember = ({ tailnet, via }: Check): ProbeProxy | undefined => {
    const usable = members(tailnet).filter(({ pod }) => via.is === 'pool' || pod !== undefined);
    const turn = turns.get(tailnet) ?? 0;
    turns.set(tailnet, turn + 1);
    return usable[turn % usable.length];
  };

  const setReached = ({ tailnet, via }: Check, member: ProbeProxy | undefined, isReached: boolean) => {
    if (!member) return;
    if (isReached) reachedAt.set(tailnet, clock.now());
    memberChecks.setReached(member, via.is === 'relay' ? 'relay' : 'pool', isReached);
  };

  /** Why a member cannot have carried a check that began at a time; undefined where it can. */
  const problemOf = async ({ tailnet, via }: Check, member: ProbeProxy, since: number) => {
    if (!(await memberChecks.isRunning(member, via.is === 'relay' ? 'relay' : 'pool')))
      return 'is not running';
    const isSuspect = (reachedAt.get(tailnet) ?? -Infinity) < since;
    if (!isSuspect || !confirmMembers) return undefined;
    await confirmMembers(tailnet);
    return members(tailnet).some(({ name }) => name === member.name) ? undefined : 'has no device';
  };

  const carryOut = async (check: Check, attempt: Attempt, signal: AbortSignal): Promise<ProbeResult> => {
    const { via, timeoutMs } = check;
    const startedAt = clock.now();
    const member = via.is === 'direct' ? undefined : nextMember(check);
    if (via.is !== 'direct' && !member) return { is: 'unknown', why: 'no mesh pod is ready' };
    try {
      await attempt.within(timeoutMs, timeoutText(check), runCheck(check, member, attempt, shared));
      setReached(check, member, true);
      return { is: 'success' };
    } catch (error) {
      if (signal.aborted) return ABORTED;
      const { reason, message, code } = checkErrorOf(error);
      const failure = { is: 'failure', error: message, code } as const;
      if (reason !== 'unanswered') setReached(check, member, reason === 'answered');
      if (reason === 'unreached') {
        return { is: 'unknown', why: member ? `${member.name}: ${message}` : message };
      }
      if (!member || reason === 'answered') return failure;
      const problem = await problemOf(check, member, startedAt);
      if (problem === undefined) return failure;
      return { is: 'unknown', why: `${member.name} ${problem}: ${message}` };
    }
  };

  const probe: Probe = (check, signal) => {
    if (signal.aborted) return Promise.resolve(ABORTED);
    return new Promise(resolve => {
      const attempt = new Attempt(clock);
      const abort = () => {
        attempt.end();
        resolve(ABORTED);
      };
      signal.addEventListener('abort', abort);
      void carryOut(check, attempt, signal).then(result => {
        signal.removeEventListener('abort', abort);
        resolve(result);
      });
    });
  };
  const close = () => {
    memberChecks.close();
    shared.grpc.close();
  };
  return { probe, close };
}

function timeoutText({ settings, timeoutMs }: Check): string {
  return `${settings.type === 'UDP' ? 'no response within' : 'timeout after'} ${seconds(timeoutMs)}`;
}

/** What checks share. */
type Shared = { readonly startTls: StartTls; readonly grpc: GrpcHealth; readonly checkUdp: CheckUdp };

async function runCheck(
  check: Check,
  member: ProbeProxy | undefined,
  attempt: Attempt,
  { startTls, grpc, checkUdp }: Shared,
): Promise<void> {
  const { settings, target } = check;
  const { type } = settings;
  if (type === 'UDP') return checkUdp(attempt, check, member);
  const connection = member
    ? await openTunnel(attempt, member.proxy, target.addresses, target.port)
    : await connectDirect(attempt, target.addresses, target.port);
  if (type === 'TCP') return;
  const protocol = type === 'GRPC' ? 'h2' : 'http/1.1';
  const socket = settings.tls ? await startTls(attempt, connection, settings.tls, protocol) : connection;
  if (type === 'HTTP') await checkHttp(attempt, socket, settings);
  else await grpc.check(attempt, socket, settings);
}
