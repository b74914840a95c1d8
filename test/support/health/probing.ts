import { onTestFinished } from 'vitest';
import { createProbe } from '../../../src/health/probe/create-probe.ts';
import type {
  Check,
  CheckSettings,
  ConfirmMembers,
  ProbeProxy,
  ProbeResult,
} from '../../../src/health/check.ts';
import { VirtualClock } from '../virtual-clock.ts';
import { startMember } from './member.ts';
import type { TestMember } from './member.ts';

type SettingsOf<T extends CheckSettings['type']> = Extract<CheckSettings, { readonly type: T }>;

/** A check of a port of 127.0.0.1 through a pool, with a timeout of 10 s. */
export function checkOf(port: number, settings: CheckSettings, changes: Partial<Check> = {}): Check {
  return {
    tailnet: 'example',
    namespace: 'team',
    target: { addresses: ['127.0.0.1'], port },
    via: { is: 'pool' },
    intervalMs: 30_000,
    timeoutMs: 10_000,
    healthyThreshold: 2,
    unhealthyThreshold: 3,
    settings,
    ...changes,
  };
}

/** The settings of an HTTP check of / that expects 200. */
export function httpSettings(changes: Partial<SettingsOf<'HTTP'>> = {}): CheckSettings {
  return {
    type: 'HTTP',
    host: 'web.example.ts.net',
    path: '/',
    headers: [],
    expectedStatus: 200,
    tls: undefined,
    ...changes,
  };
}

/** A probe through one member, under a clock of its own. */
export type Probing = {
  readonly member: TestMember;
  readonly clock: VirtualClock;
  readonly probe: (check: Check, signal?: AbortSignal) => Promise<ProbeResult>;
  /** Probes, and advances the clock by the timeout of the check once a condition holds. */
  readonly probeUntilTimeout: (check: Check, isWaiting: () => boolean) => Promise<ProbeResult>;
};

/** Starts a member and a probe until the test has finished; the pool has only this member, unless others are given. */
export async function startProbing(
  others?: readonly ProbeProxy[],
  confirmMembers?: ConfirmMembers,
): Promise<Probing> {
  const member = await startMember();
  onTestFinished(() => member.close());
  const clock = new VirtualClock();
  const opened = createProbe({
    members: () => others ?? [member],
    clock,
    ...(confirmMembers && { confirmMembers }),
  });
  onTestFinished(() => opened.close());
  const probe = (check: Check, signal = new AbortController().signal) => opened.probe(check, signal);
  const probeUntilTimeout = async (check: Check, isWaiting: () => boolean) => {
    const result = probe(check);
    while (!isWaiting()) await new Promise(setImmediate);
    await clock.advance(check.timeoutMs);
    return result;
  };
  return { member, clock, probe, probeUntilTimeout };
}
