import { UNKNOWN_FRONT } from '../mesh-tailnet/relays/front.ts';
import { onTestFinished } from 'vitest';
import type { ControlApiOptions } from '../../../../lab/control-api/control-api.ts';
import { endpointsController } from '../../../../src/controllers/mesh-endpoints/controller.ts';
import { meshGatewayController } from '../../../../src/controllers/mesh-gateway/controller.ts';
import { vipServicesController } from '../../../../src/controllers/vip-services/controller.ts';
import type { ObjectEvent, RecordEvents } from '../../../../src/store/resources.ts';
import { sweeper } from '../../../../src/controllers/vip-services/sweep.ts';
import { trafficValues } from '../../../../src/store/traffic/values.ts';
import type { TrafficValues } from '../../../../src/store/traffic/values.ts';
import { vipServiceMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import type { Metrics } from '../../../../src/telemetry/registry.ts';
import { startScene } from '../../control/scene.ts';
import type { Scene } from '../../control/scene.ts';
import { named } from '../../declared.ts';
import { eventually } from '../../eventually.ts';
import { endpoint, meshEndpoints } from '../../objects.ts';
import { TRAFFIC } from '../mesh-endpoints/scene.ts';
import { ScriptedHealth } from '../mesh-endpoints/scripted-health.ts';
import { createPublished } from '../../../../src/runtime/published.ts';
import type { Published } from '../../../../src/runtime/published.ts';
import { MemoryNamespace } from '../mesh-tailnet/namespace.ts';
import { relayPortsController } from '../../../../src/controllers/mesh-tailnet/relays/controller.ts';
import type { ServingPods } from './serving-pods.ts';
import type { ServicesOfTailnet } from '../../../../src/controllers/mesh-endpoints/vip-services.ts';

const START = Date.UTC(2026, 0, 15, 12);

/** The id of the installation of a scene. */
export const INSTALLATION = '0a1b2c3d';

export type VipSceneOptions = {
  readonly api?: ControlApiOptions;
  readonly scopes?: readonly string[];
  /** Of the MeshTailnet. */
  readonly spec?: object;
  /** The operator's namespace. */
  readonly namespace?: MemoryNamespace;
  /** The mesh pods of a managed pool; without them others run the proxies. */
  readonly meshPods?: ServingPods;
  readonly maxVipServices?: number;
};

/** No mesh pod serves what its holder has left. */
export function withoutMeshPods(
  vipServices: Published<ServicesOfTailnet>,
): Published<ReadonlyMap<string, string>> {
  return {
    of: tailnet => vipServices.of(tailnet)?.names?.left,
    subscribe: listener => vipServices.subscribe(listener),
    publish: () => undefined,
  };
}

/** A MeshEndpoints that lists a VIP service for each of these names, at port 443. */
export function publishing(name: string, services: readonly string[], more: object = {}): object {
  const vipServices = services.map(service => ({ name: service, port: 443, targetEndpoint: 'web' }));
  const spec = { endpoints: [endpoint()], serviceDiscovery: { vipServices, ...more } };
  return named(meshEndpoints(spec), `default/${name}`);
}

type ProcessDeps = Pick<Scene, 'runtime' | 'tailnets' | 'memory' | 'clock'> & {
  readonly maxVipServices: number;
  readonly values: TrafficValues;
  readonly now: () => Date;
  readonly recorder: RecordEvents;
  readonly registry: Metrics<typeof vipServiceMetrics>;
  readonly namespace: MemoryNamespace;
  readonly meshPods: ServingPods | undefined;
};

/** The controllers of one process: what another has published is not known to it. */
function startProcess(deps: ProcessDeps) {
  const { runtime, tailnets, memory, clock, values, now, recorder, registry, namespace, meshPods } = deps;
  const { tracking } = runtime;
  const { maxVipServices } = deps;
  const vipServices = createPublished<ServicesOfTailnet>();
  const unserved = meshPods ? createPublished<ReadonlyMap<string, string>>() : withoutMeshPods(vipServices);
  const pods = {
    ...{ values, vipServices, unserved, clock },
    events: recorder,
    log: runtime.telemetry.log,
  };
  return [
    runtime.start(
      vipServicesController({
        ...{ tracking, tailnets, values, vipServices, clock, now, record: registry.record },
        installation: INSTALLATION,
        ...{ write: memory.write, log: runtime.telemetry.log },
        ...{ ownNamespace: namespace, unserved, maxVipServices },
        random: () => 0,
      }),
    ),
    runtime.start(
      endpointsController({
        ...{ tracking, tailnets, vipServices, now, dataPath: 'Proxy', relayPorts: undefined },
        ...{ inputs: [], controlURL: undefined, anchorNamespace: undefined, health: new ScriptedHealth() },
        values,
        write: memory.write,
        events: recorder,
      }),
    ),
    runtime.start(
      meshGatewayController({
        ...{ tracking, values, clock, now, events: recorder },
        write: memory.write,
        sweep: sweeper({
          ...{ tailnets, now, record: registry.record },
          ...{ installation: INSTALLATION, write: memory.write },
        }),
      }),
    ),
    ...(meshPods
      ? [runtime.start(relayPortsController({ ...UNKNOWN_FRONT, ...meshPods.deps(), ...pods, tracking }))]
      : []),
  ];
}

/** The controllers of tailnets, VIP services and MeshEndpoints with a simulated control API. */
export async function startVipScene({
  api = {},
  scopes = ['devices:core', 'auth_keys', 'services'],
  spec = {},
  namespace = new MemoryNamespace(),
  meshPods,
  maxVipServices = 1000,
}: VipSceneOptions = {}) {
  const pool = meshPods ? { mode: 'Managed' } : { mode: 'External', addresses: ['127.0.0.1:1055'] };
  const scene = await startScene({ api, spec: { pool, ...spec }, scopes });
  const { runtime, memory, clock, api: simulated } = scene;
  const registry = createRegistry({ metrics: vipServiceMetrics, version: 'test' });
  const now = () => new Date(START + clock.now());
  const values = trafficValues(runtime.tracking, TRAFFIC);
  const events: string[] = [];
  const recorder = {
    record: ({ type, reason, note }: ObjectEvent) => void events.push(`${type} ${reason} ${note}`),
  };
  const deps = { ...scene, values, now, recorder, registry, namespace, meshPods, maxVipServices };
  const start = () => startProcess(deps);
  meshPods?.putPods(memory.observe);
  let running = start();
  const end = async () => {
    for (const controller of running) await controller.drain({ graceMs: 0, abortMs: 0 });
  };
  onTestFinished(async () => {
    await end();
    await scene.close();
  });
  const get = (name: string) => memory.read.get({ kind: 'MeshEndpoints', namespace: 'default', name });
  return {
    api: simulated,
    ...{ events, clock, memory, lines: scene.lines, metrics: () => registry.text() },
    /** Replaces the operator by another process. */
    restart: async () => {
      await end();
      running = start();
    },
    /** Another process leads, and requests of the one before still arrive. */
    changeLeader: async () => {
      const before = running;
      for (const controller of before) controller.stop();
      running = start();
      await clock.advance(0);
      for (const controller of before) await controller.drain({ graceMs: 0, abortMs: 0 });
    },
    put: (object: object) => memory.author.put(object),
    remove: (name: string) => memory.author.remove({ kind: 'MeshEndpoints', namespace: 'default', name }),
    /** Lets time pass in steps until an expectation holds. */
    until: <T>(expectation: () => T, ms = 1000) =>
      eventually(async () => {
        await clock.advance(ms);
        return expectation();
      }, 1),
    /** The entry of a service in the status of a MeshEndpoints. */
    entry: (name: string, service = 'web') =>
      get(name)?.status?.vipServices?.find(each => each.name === service),
    condition: (name: string) =>
      get(name)?.status?.conditions?.find(({ type }) => type === 'VIPServicesReady'),
    /** The status of a MeshGateway. */
    gateway: (name: string, namespace = 'default') =>
      memory.read.get({ kind: 'MeshGateway', namespace, name })?.status,
    tailnet: (name = 'example') => memory.read.get({ kind: 'MeshTailnet', namespace: '', name }),
    /** The policy approves devices with a tag for a service, once they advertise it. */
    autoApprove: (service: string, tag: string) => {
      simulated.state.policy = { tagOwners: {}, autoApprovers: { services: { [service]: [tag] } } };
    },
    /** The services of the tailnet, by name. */
    services: () => simulated.state.services.all().map(({ name }) => name),
    service: (name = 'svc:web') => simulated.state.services.current(name),
  };
}
