import type { ControlApi } from '../../../../lab/control-api/control-api.ts';
import type { Dialect } from '../../../../lab/control-api/state.ts';
import { endpointsController } from '../../../../src/controllers/mesh-endpoints/controller.ts';
import { trafficValues } from '../../../../src/store/traffic/values.ts';
import { createGuard } from '../../../../src/traffic/address-guard.ts';
import { callsOf } from '../../control/simulated.ts';
import { startScene } from '../../control/scene.ts';
import type { Scene } from '../../control/scene.ts';
import { named } from '../../declared.ts';
import { meshEndpoints } from '../../objects.ts';
import { ScriptedHealth } from './scripted-health.ts';

/** The controllers of MeshTailnets and MeshEndpoints with a simulated control API, and an object that selects `tag:web`. */
export type DiscoveryScene = {
  readonly api: ControlApi;
  /** The names of the endpoints in the status, and whether it is marked as stale. */
  readonly names: () => readonly string[];
  readonly isStale: () => boolean | undefined;
  /** How often the status of the object was written. */
  readonly writes: () => number;
  /** Lets intervals of the MeshTailnet pass. */
  readonly intervals: (count: number) => Promise<void>;
  /** The list of devices as the control API shows it. */
  readonly listed: () => Promise<readonly unknown[]>;
  readonly close: () => Promise<void>;
};

const TRAFFIC = {
  dataPath: 'Proxy',
  clusterEncoding: '',
  settingsFrom: 'MeshGateway',
  readsBackends: false,
  guard: createGuard({ allow: [], refuse: [], apiServer: [] }),
} as const;

export async function startDiscovery(dialect: Dialect): Promise<DiscoveryScene> {
  const spec = { pool: { mode: 'External', addresses: ['127.0.0.1:1055'] } };
  const scene = await startScene({ api: { dialect }, spec });
  const { api, client, memory, runtime, tailnets, clock } = scene;
  const { tracking } = runtime;
  let writes = 0;
  const running = runtime.start(
    endpointsController({
      ...{
        tracking,
        tailnets,
        dataPath: 'Proxy',
        relayPorts: undefined,
        vipServices: undefined,
        inputs: [],
        controlURL: undefined,
        anchorNamespace: undefined,
      },
      values: trafficValues(tracking, TRAFFIC),
      write: {
        replaceStatus: async (object, status) => {
          writes++;
          await memory.write.replaceStatus(object, status);
        },
      },
      events: { record: () => undefined },
      health: new ScriptedHealth(),
      now: () => new Date(Date.UTC(2026, 0, 15, 12) + clock.now()),
    }),
  );
  const tagSelectors = [{ key: 'web', operator: 'Exists' }];
  await memory.author.put(named(meshEndpoints({ endpoints: undefined, tagSelectors }), 'default/web'));
  const call = await callsOf(api, client);
  const status = () => memory.read.get({ kind: 'MeshEndpoints', namespace: 'default', name: 'web' })?.status;
  return {
    api,
    names: () => (status()?.endpoints ?? []).map(({ name }) => name),
    isStale: () => status()?.discovery?.stale,
    writes: () => writes,
    intervals: count => passIntervals(scene, count),
    listed: async () => {
      const { json } = await call('GET', '/tailnet/-/devices?fields=all');
      return (json as { readonly devices: readonly unknown[] }).devices;
    },
    close: async () => {
      await running.drain({ graceMs: 0, abortMs: 0 });
      await scene.close();
    },
  };
}

async function passIntervals({ interval, clock }: Scene, count: number): Promise<void> {
  for (let left = count; left > 0; left--) {
    await interval();
    await clock.settle();
  }
}
