import { once } from 'node:events';
import type { Access } from '../../../api/access.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import type { Clock } from '../../../api/clock.ts';
import type { ResourceKind } from '../../../api/key.ts';
import { RELAY_PORT_SHARES } from '../../../api/shares.ts';
import { relayName } from '../../../api/names.ts';
import { formatTargets, TARGETS_KEY, targetsVersion } from '../../../api/relay-targets.ts';
import type { PortsOfTailnet } from '../../mesh-endpoints/relay-ports.ts';
import { metadataOf } from '../pool/objects.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import { regardingOf } from '../../../store/resources.ts';
import type { RecordEvents } from '../../../store/resources.ts';
import type { TrafficValues } from '../../../store/traffic/values.ts';
import { endsWithin } from '../../../runtime/clock.ts';
import type { Controller } from '../../../runtime/controller.ts';
import type { Outcome } from '../../../runtime/queue/queue.ts';
import type { Log } from '../../../telemetry/log.ts';
import { trafficAccess } from '../../../traffic/access.ts';
import { confirm, UNCONFIRMED } from './confirmation.ts';
import type { Confirmation, ConfirmationInput } from './confirmation.ts';
import { gather, runsRelays, targetsIn } from './gather.ts';
import type { Input } from './gather.ts';
import { assignPorts } from './plan.ts';
import type { Assignment, PortRange } from './plan.ts';
import type { PublishedPorts } from './published-ports.ts';
import { readRelays } from './relay-status.ts';
import type { HttpGet } from './relay-status.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What the controller works with. */
export type RelayPortsDeps = {
  readonly values: Pick<TrafficValues, 'settingsResources'>;
  /** Where mesh pods run. */
  readonly workloads: OwnNamespace;
  readonly relayPorts: PublishedPorts;
  /** Which ports relays may listen on. */
  readonly relayPortRange: PortRange;
  /** How many of them new endpoints of a namespace may take on a tailnet; its share of the range if undefined. */
  readonly relayPortsPerNamespace: number | undefined;
  /** The image of relays; without it mesh pods have none. */
  readonly relayImage: string | undefined;
  readonly httpGet: HttpGet;
  readonly clock: Clock;
  readonly events: RecordEvents;
  readonly log: Log;
};

/** The kinds that the controller reads. */
export const reads: readonly ResourceKind[] = ['MeshTailnet', 'MeshEndpoints', 'Namespace', 'Pod'];

/** What is kept of a tailnet between two reconciles; without it nothing but time is lost. */
type Memory = {
  readonly appliedAt: number;
  readonly freed: FreedPorts;
  readonly owners: Assignment['owners'];
  readonly confirmation: Confirmation;
};

/** Ports that lost their target a short time ago, which are not given to another one. */
type FreedPorts = ReadonlyMap<number, { readonly target: string; readonly at: number }>;

const NOTHING: Memory = {
  ...{ appliedAt: -Infinity, freed: new Map(), owners: new Map() },
  confirmation: UNCONFIRMED,
};

/** The ConfigMap is applied again after this time, in case others have changed its metadata. */
const REAPPLY_MS = 600_000;

/** Relays close a port that lost its target after 5 s; by then Envoys no longer send to it. */
const FREED_MS = 10_000;

/** After new targets, relays are read after these times, until they have them: so changes in quick succession are one write. */
const SETTLE_MS = [100, 200, 400];

/** What the controller may do in a cluster: read what decides traffic and, in its namespace, mesh pods; and write the ConfigMaps of relays. */
export const access: Access = {
  cluster: trafficAccess,
  own: [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  ],
};

/** Assigns a relay port to each UDP endpoint of a tailnet, publishes the targets to its relays, and the ports once they listen. */
export function relayPortsController(deps: RelayPortsDeps): Controller<'MeshTailnet'> {
  const { values, workloads, relayPorts, relayImage, clock } = deps;
  const memories = new Map<string, Memory>();
  return {
    name: 'relay-ports',
    kind: 'MeshTailnet',
    reads,
    reconcile: async (ref, read, context) => {
      const { name } = ref;
      const tailnet = read.get(ref);
      const traffic = values.settingsResources(read);
      if (!tailnet || !runsRelays(tailnet, traffic)) {
        memories.delete(name);
        relayPorts.publish(name, undefined);
        return { requeue: 'on-change' };
      }
      const gathered = await gather(tailnet, workloads, { read, traffic });
      if (relayImage === undefined) {
        relayPorts.publish(name, withoutRelays(gathered));
        return { requeue: 'on-change' };
      }
      const memory = memories.get(name) ?? NOTHING;
      const { assignment, freed } = plan(gathered, memory, deps);
      const text = formatTargets(inverted(assignment.ports));
      const { appliedAt } = await applyTargets(text, { ...gathered, ...memory, tailnet, workloads }, deps);
      const confirmation = await confirmPorts(
        { tailnet: name, ports: assignment.ports, version: targetsVersion(text) },
        { ...gathered, before: memory.confirmation, isNew: gathered.stored !== text },
        context.signal,
        deps,
      );
      reportProblems(tailnet, memory.confirmation, confirmation, deps);
      memories.set(name, { appliedAt, freed, owners: assignment.owners, confirmation });
      relayPorts.publish(name, portsOf(assignment, confirmation));
      return outcomeOf(assignment, freed, confirmation, clock.now());
    },
  };
}

const NO_IMAGE =
  'mesh pods have no relay, since the operator has no RELAY_IMAGE: set it to the image of mesh-gateway';

function withoutRelays({ wanted }: Input): PortsOfTailnet {
  return { ports: new Map(), missing: new Map(wanted.map(({ target }) => [target, NO_IMAGE])) };
}

/** Assigns ports, and keeps those that have lost their target. */
function plan(
  { wanted, stored = '' }: Input,
  { freed: before, owners }: Memory,
  { relayPortRange: range, relayPortsPerNamespace: perNamespace = shareOf(range), clock }: RelayPortsDeps,
): { readonly assignment: Assignment; readonly freed: FreedPorts } {
  const now = clock.now();
  const held = new Map([...before].filter(([, { at }]) => now - at < FREED_MS));
  const heldTargets = [...held].map(([port, { target }]) => [port, target] as const);
  const previous = new Map([...heldTargets, ...targetsIn(stored)]);
  const assignment = assignPorts(previous, wanted, { range, perNamespace, owners });
  const assigned = new Set(assignment.ports.values());
  const lost = [...previous].filter(([port]) => !assigned.has(port));
  const freed = lost.map(([port, target]) => [port, { target, at: held.get(port)?.at ?? now }] as const);
  return { assignment, freed: new Map(freed) };
}

/** The relay ports of a namespace where no setting has their number. */
function shareOf({ first, last }: PortRange): number {
  return Math.max(1, Math.floor((last - first + 1) / RELAY_PORT_SHARES));
}

function inverted(ports: ReadonlyMap<string, number>): ReadonlyMap<number, string> {
  return new Map([...ports].map(([target, port]) => [port, target]));
}

type ApplyOptions = Pick<Input, 'stored' | 'needsConfigMap'> &
  Pick<Memory, 'appliedAt'> & { readonly tailnet: MeshTailnet; readonly workloads: OwnNamespace };

/** Stores the text of the targets where it differs. */
async function applyTargets(
  text: string,
  { stored, needsConfigMap, appliedAt, tailnet, workloads }: ApplyOptions,
  { clock }: RelayPortsDeps,
): Promise<Pick<Memory, 'appliedAt'>> {
  const now = clock.now();
  const isDue = now - appliedAt >= REAPPLY_MS;
  if (!needsConfigMap || (stored === text && !isDue)) return { appliedAt };
  const metadata = metadataOf({ tailnet }, relayName(tailnet.metadata.name));
  await workloads.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [TARGETS_KEY]: text } });
  return { appliedAt: now };
}

type ConfirmOptions = Pick<Input, 'pods'> & {
  readonly before: Confirmation;
  /** Whether the targets were stored a moment ago. */
  readonly isNew: boolean;
};

/** Reads the relays, and decides which ports are confirmed. */
async function confirmPorts(
  targets: Pick<ConfirmationInput, 'tailnet' | 'ports' | 'version'>,
  { pods, before, isNew }: ConfirmOptions,
  signal: AbortSignal,
  deps: RelayPortsDeps,
): Promise<Confirmation> {
  const { clock } = deps;
  const aborted = once(signal, 'abort');
  const relays = targets.ports.size === 0 ? [] : pods;
  let confirmation = before;
  for (const ms of isNew && relays.length > 0 ? SETTLE_MS : [0]) {
    if (ms > 0) await endsWithin(clock, ms, aborted);
    const reports = await readRelays(relays, signal, deps);
    confirmation = confirm(confirmation, { ...targets, reports, now: clock.now() });
    if (!confirmation.isWaiting) break;
  }
  return confirmation;
}

function portsOf({ ports, missing }: Assignment, confirmation: Confirmation): PortsOfTailnet {
  const { confirmed, failed, pending } = confirmation;
  const usable = [...ports].filter(([target]) => !failed.has(target));
  return {
    ports: new Map(usable.map(([target, port]) => [target, { port, isConfirmed: confirmed.has(target) }])),
    missing: new Map([...missing, ...failed, ...pending]),
  };
}

/** Records an Event and a log line for each problem of a relay that it did not have before. */
function reportProblems(
  tailnet: MeshTailnet,
  before: Confirmation,
  { problems }: Confirmation,
  { events, log }: RelayPortsDeps,
): void {
  const { name } = tailnet.metadata;
  for (const { pod, reason, why } of problems.values()) {
    if (before.problems.get(pod.uid)?.reason === reason) continue;
    log.warn('a relay does not listen on all of its ports', { tailnet: name, pod: pod.name, reason, why });
    events.record({
      regarding: regardingOf(tailnet),
      ...{ type: 'Warning', reason, action: 'Reconcile', note: `mesh pod ${pod.name}: ${why}` },
    });
  }
}

function outcomeOf(
  { missing }: Assignment,
  freed: FreedPorts,
  { nextMs = Infinity }: Confirmation,
  now: number,
): Outcome {
  const ends = missing.size === 0 ? [] : [...freed.values()].map(({ at }) => at + FREED_MS - now);
  const ms = Math.min(nextMs, ...ends);
  return ms === Infinity ? { requeue: 'on-change' } : { requeue: 'after', ms };
}
