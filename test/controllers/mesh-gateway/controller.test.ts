import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../src/api/conditions.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { meshGatewayController } from '../../../src/controllers/mesh-gateway/controller.ts';
import type { ObjectEvent } from '../../../src/store/resources.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { gatewayObject, named } from '../../support/declared.ts';
import { meshGateway } from '../../support/objects.ts';
import { Runtime } from '../../support/runtime/runtime.ts';

const gateway = (name: string) =>
  gatewayObject('Gateway', name, {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  });
const targets = (...names: string[]) => ({
  targetRefs: names.map(name => ({ group: 'gateway.networking.k8s.io', kind: 'Gateway', name })),
});
/** In memory all are equally old, so that the first by name decides. */
const first = named(meshGateway(), 'default/a');

/** The controller on resources in memory. */
async function controllerOn(...objects: readonly object[]) {
  const runtime = new Runtime(objects, trafficIndexes);
  const { memory, clock } = runtime;
  const events: ObjectEvent[] = [];
  let writes = 0;
  const write = {
    replaceStatus: async (...given: Parameters<typeof memory.write.replaceStatus>) => {
      writes++;
      await memory.write.replaceStatus(...given);
    },
  } as Pick<typeof memory.write, 'replaceStatus'>;
  const now = () => new Date('2026-01-01T00:00:00Z');
  runtime.start(meshGatewayController({ write, events: { record: event => void events.push(event) }, now }), {
    syncPeriodMs: 30_000,
  });
  await memory.start();
  await clock.settle();
  const statusOf = (name: string): Kinds['MeshGateway']['status'] =>
    memory.read.get({ kind: 'MeshGateway', namespace: 'default', name })?.status;
  const accepted = (name: string) => {
    const { status, reason, message } = findCondition(statusOf(name)?.conditions, 'Accepted') ?? {};
    return `${status} ${reason}: ${message}`;
  };
  const change = async (done: Promise<unknown>) => {
    await done;
    await clock.settle();
  };
  return { clock, events, memory, statusOf, accepted, change, countWrites: () => writes };
}

describe('a MeshGateway', () => {
  it('is accepted for Gateways that exist', async () => {
    const { accepted } = await controllerOn(
      gateway('public'),
      gateway('b'),
      named(meshGateway(targets('public', 'b', 'b')), 'default/a'),
    );
    expect(accepted('a')).toBe('True Accepted: decides about Gateways public, b');
  });

  it('is not accepted while a Gateway does not exist', async () => {
    const { accepted, memory, change, events } = await controllerOn(named(meshGateway(), 'default/a'));
    expect(accepted('a')).toMatch(
      /^False TargetNotFound: Gateway public: .* create it, or correct spec.targetRefs$/,
    );
    await change(memory.author.put(gateway('public')));
    expect(accepted('a')).toMatch(/^True Accepted: /);
    expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      'Warning TargetNotFound',
      'Normal Accepted',
    ]);
  });

  it('is Conflicted while an older one targets its Gateway', async () => {
    const second = named(meshGateway(targets('b', 'public')), 'default/second');
    const { accepted, memory, change } = await controllerOn(gateway('public'), gateway('b'), first, second);
    expect(accepted('a')).toBe('True Accepted: decides about Gateway public');
    expect(accepted('second')).toMatch(
      /^False Conflicted: Gateway public: MeshGateway a decides, as the oldest/,
    );
    await change(memory.author.remove({ kind: 'MeshGateway', namespace: 'default', name: 'a' }));
    expect(accepted('second')).toBe('True Accepted: decides about Gateways b, public');
  });

  it('is not in conflict with one of another namespace', async () => {
    const { accepted } = await controllerOn(gateway('public'), first, named(meshGateway(), 'far/a'));
    expect(accepted('a')).toMatch(/^True /);
  });

  it('is written once, and not when nothing has changed', async () => {
    const { clock, memory, change, countWrites } = await controllerOn(gateway('public'), first);
    await clock.advance(120_000);
    await change(memory.author.put(gateway('unrelated')));
    expect(countWrites()).toBe(1);
  });
});
