import { describe, expect, it } from 'vitest';
import type { AccessRule } from '../../src/api/access.ts';
import { withoutPolicies } from '../../src/controllers/mesh-tailnet/enforcement/enforcement.ts';
import {
  controllerIndexes,
  controllerKinds,
  controllerNames,
  operatorAccess,
  startControllers,
} from '../../src/controllers/registry.ts';
import { SERVED } from '../../src/kubernetes/served-kinds.ts';
import { openTailnets } from '../../src/control/tailnets.ts';
import { gatherCallers } from '../../src/store/callers.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { trafficValues } from '../../src/store/traffic/values.ts';
import { readCaBundle } from '../../src/traffic/upstream-tls.ts';
import { ScriptedHealth } from '../support/controllers/mesh-endpoints/scripted-health.ts';
import { MemoryNamespace } from '../support/controllers/mesh-tailnet/namespace.ts';
import { OwnNamespace } from '../support/control/scene.ts';
import { Runtime } from '../support/runtime/runtime.ts';
import { createPublished } from '../../src/runtime/published.ts';
import type { FrontState } from '../../src/controllers/mesh-tailnet/pool/front-condition.ts';
import type { PortsOfTailnet } from '../../src/controllers/mesh-endpoints/relay-ports.ts';
import type { ServicesOfTailnet } from '../../src/controllers/mesh-endpoints/vip-services.ts';

describe('the registry of controllers', () => {
  const { memory, clock, telemetry, tracking } = new Runtime([], [...trafficIndexes, ...controllerIndexes]);
  const now = () => new Date();
  const tailnets = openTailnets({ clock, now, random: Math.random, userAgent: 'mesh-gateway/test' });
  const deps = {
    tracking,
    values: trafficValues(tracking, { dataPath: 'Proxy', clusterEncoding: '', settingsFrom: 'MeshGateway' }),
    write: memory.write,
    clock,
    telemetry,
    now,
    tailnets,
    ownNamespace: new OwnNamespace(),
    events: { record: () => undefined },
    controlURL: undefined,
    dataPath: 'Proxy' as const,
    anchorNamespace: 'mesh-system',
    relayPorts: undefined,
    vipServices: undefined,
    health: new ScriptedHealth(),
    inputs: [],
    pools: undefined,
    enforcement: undefined,
    cluster: {
      ownNamespace: new MemoryNamespace(),
      referenced: { configMap: () => Promise.resolve(undefined), secret: () => Promise.resolve(undefined) },
      callers: gatherCallers(),
      enforcement: withoutPolicies('mesh-operator-0'),
      caBundle: readCaBundle,
      relayPorts: createPublished<PortsOfTailnet>(),
      fronts: createPublished<FrontState>(),
      relayPortRange: { first: 0, last: 0 },
      relayPortsPerNamespace: undefined,
      maxVipServices: 1000,
      relayImage: undefined,
      vipServices: createPublished<ServicesOfTailnet>(),
      unserved: createPublished<ReadonlyMap<string, string>>(),
      installation: '0a1b2c3d',
      random: () => 0,
      record: { registrations: () => undefined },
    },
  };

  it('starts each controller under its name in metrics', async () => {
    const running = startControllers(deps, { concurrency: 1, syncPeriodMs: 30_000 });
    expect(running.map(({ name }) => name)).toEqual(controllerNames);
    expect(new Set(controllerNames).size).toBe(controllerNames.length);
    await Promise.all(running.map(controller => controller.drain({ graceMs: 0, abortMs: 0 })));
  });

  it('starts no controller without a cluster that needs one', async () => {
    const running = startControllers(
      { ...deps, cluster: undefined },
      { concurrency: 1, syncPeriodMs: 30_000 },
    );
    expect(running.map(({ name }) => name)).toEqual([
      'mesh-binding',
      'mesh-endpoints',
      'mesh-gateway',
      'mesh-route-policy',
      'mesh-tailnet',
    ]);
    await Promise.all(running.map(controller => controller.drain({ graceMs: 0, abortMs: 0 })));
  });

  it('lets the operator watch what controllers read, and of ConfigMaps and Pods only those of its namespace', () => {
    const watchable = (rules: readonly AccessRule[]) =>
      rules.filter(({ verbs }) => verbs.includes('watch')).flatMap(({ resources }) => resources);
    const own = ['ConfigMap', 'Pod'];
    const plurals = controllerKinds.filter(kind => !own.includes(kind)).map(kind => SERVED[kind].plural);
    expect(watchable(operatorAccess.cluster).sort()).toEqual(plurals.sort());
    expect([...new Set(watchable(operatorAccess.own))].sort()).toEqual(['configmaps', 'pods']);
  });

  it('lists no rule of access twice', () => {
    for (const rules of [operatorAccess.cluster, operatorAccess.own]) {
      const texts = rules.map(rule => JSON.stringify(rule));
      expect(new Set(texts).size).toBe(texts.length);
    }
  });
});
