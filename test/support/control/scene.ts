import { expect } from 'vitest';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type { ControlApiOptions } from '../../../lab/control-api/control-api.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { openTailnets } from '../../../src/control/tailnets.ts';
import { tailnetController, tailnetIndexes } from '../../../src/controllers/mesh-tailnet/controller.ts';
import type { TailnetDeps } from '../../../src/controllers/mesh-tailnet/controller.ts';
import { sharedIndexes } from '../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import type { ObjectEvent } from '../../../src/store/resources.ts';
import type { OwnData, OwnSecret, ReadOwnNamespace } from '../../../src/store/own-namespace.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { controlMetrics } from '../../../src/telemetry/metrics.ts';
import { named } from '../declared.ts';
import { eventually } from '../eventually.ts';
import { meshTailnet } from '../objects.ts';
import { Runtime } from '../runtime/runtime.ts';

const SCOPES = ['devices:core', 'auth_keys'];
const SYNC_MS = 30_000;
const START = Date.UTC(2026, 0, 15, 12);

/** Secrets and ConfigMaps of the operator's namespace, which a test changes as it likes. */
export class OwnNamespace implements ReadOwnNamespace {
  readonly place = 'namespace mesh-system';
  readonly secrets = new Map<string, OwnSecret>();
  readonly configMaps = new Map<string, OwnData>();
  issueToken: (audience: string) => Promise<string> = () => Promise.reject(new Error('no issuer'));
  #version = 0;

  put(id: string, secret: string, name = 'mesh-oauth'): void {
    this.#version++;
    const data = { 'client-id': id, 'client-secret': secret };
    this.secrets.set(name, { version: String(this.#version), data, annotations: {} });
  }

  secret(name: string): Promise<OwnSecret | undefined> {
    return Promise.resolve(this.secrets.get(name));
  }

  configMap(name: string): Promise<OwnData | undefined> {
    return Promise.resolve(this.configMaps.get(name));
  }

  serviceAccountToken(audience: string): Promise<string> {
    return this.issueToken(audience);
  }
}

/** What a scene starts with. */
export type SceneOptions = {
  readonly api?: ControlApiOptions;
  /** Whether the Secret mesh-oauth has the credentials of a client. */
  readonly hasSecret?: boolean;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly objects?: readonly object[];
  /** Whether the simulator is the control API of MeshTailnets that name none. */
  readonly isDefault?: boolean;
  /** Of the client. */
  readonly scopes?: readonly string[];
  /** Whether NetworkPolicies are enforced; without it, the scene is one without a cluster. */
  readonly enforcement?: TailnetDeps['enforcement'];
};

/** The controller of MeshTailnets on a memory, with a simulated control API and a clock that the test moves. */
export async function startScene({
  api = {},
  hasSecret = true,
  spec = {},
  objects,
  isDefault = false,
  scopes = SCOPES,
  enforcement,
}: SceneOptions = {}) {
  const runtime = new Runtime(objects ?? [], [...trafficIndexes, ...sharedIndexes, ...tailnetIndexes]);
  const { clock, memory } = runtime;
  const simulated = await startControlApi({ clock: { now: () => START + clock.now() }, ...api });
  const ownNamespace = new OwnNamespace();
  const client = simulated.addClient(scopes);
  if (hasSecret) ownNamespace.put(client.id, client.secret);
  const registry = createRegistry({ metrics: controlMetrics, version: 'test' });
  const now = () => new Date(START + clock.now());
  const tailnets = openTailnets({ clock, now, random: () => 0, metrics: registry, userAgent: 'test' });
  const events: ObjectEvent[] = [];
  const runs = { running: 0, completed: 0, writes: 0 };
  const controller = tailnetController({
    ...{ pools: undefined, enforcement, tracking: runtime.tracking, ownNamespace, tailnets, now },
    controlURL: isDefault ? simulated.url : undefined,
    write: {
      ...memory.write,
      replaceStatus: async (object, status) => {
        runs.writes++;
        await memory.write.replaceStatus(object, status);
      },
    },
    events: { record: event => void events.push(event) },
    log: runtime.telemetry.log,
  });
  const running = runtime.start({
    ...controller,
    reconcile: async (ref, read, context) => {
      runs.running++;
      try {
        return await controller.reconcile(ref, read, context);
      } finally {
        runs.running--;
        runs.completed++;
      }
    },
  });
  /** Waits until no run is in progress and at least one has ended since. */
  const ended = (before: number) =>
    eventually(async () => {
      await clock.advance(0);
      expect(runs.running === 0 && runs.completed > before).toBe(true);
    }, 1);
  const put = async (object: object) => {
    const before = runs.completed;
    await memory.author.put(object);
    await ended(before);
  };
  await memory.start();
  if (!objects) await put(named(meshTailnet({ controlURL: simulated.url, ...spec }), 'example'));
  const status = (name = 'example'): NonNullable<Kinds['MeshTailnet']['status']> =>
    memory.read.get({ kind: 'MeshTailnet', namespace: '', name })?.status ?? {};
  return {
    ...{ api: simulated, client, ownNamespace, clock, memory, events, runs, put, status, tailnets },
    ...{ runtime, lines: runtime.lines },
    /** Lets one interval pass, and waits until the object has been reconciled. */
    interval: async (ms = SYNC_MS) => {
      const before = runs.completed;
      await clock.advance(ms);
      await ended(before);
    },
    condition: (type: string, name = 'example') =>
      status(name).conditions?.find(condition => condition.type === type),
    metrics: () => registry.text(),
    drain: () => running.drain({ graceMs: 0, abortMs: 0 }),
    close: async () => {
      await running.drain({ graceMs: 0, abortMs: 0 });
      tailnets.close();
      await simulated.close();
    },
  };
}

/** A running scene. */
export type Scene = Awaited<ReturnType<typeof startScene>>;
