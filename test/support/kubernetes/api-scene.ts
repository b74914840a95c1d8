import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Clock } from '../../../src/api/clock.ts';
import { decode } from '../../../src/api/objects/decode.ts';
import { keyOf } from '../../../src/api/key.ts';
import type { Key, ResourceKind } from '../../../src/api/key.ts';
import { refTo } from '../../../src/api/objects/references.ts';
import type { Resource } from '../../../src/api/objects/resource.ts';
import type { Change } from '../../../src/store/resources.ts';
import { ResourceStore } from '../../../src/store/store.ts';
import { restConfigSource } from '../../../src/kubernetes/auth/config-source.ts';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import type { Timing } from '../../../src/kubernetes/reflector/state.ts';
import { createSource } from '../../../src/kubernetes/reflector/source.ts';
import type { Source } from '../../../src/kubernetes/reflector/source.ts';
import type { SourceTelemetry } from '../../../src/kubernetes/reflector/observer.ts';
import type { KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { sourceMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import type { Exposition } from '../../../src/telemetry/registry.ts';
import { ApiServer } from './api-server.ts';
import { asServed } from './api-objects.ts';
import { AUTHORITY } from './wire-certificates.ts';

/** Timeouts that a test can wait for. */
const QUICK: Timing = {
  idleTimeoutMs: 300,
  openTimeoutMs: 300,
  watchMs: [2_000, 4_000],
  goodWatchMs: 250,
  firstBackoffMs: 20,
  maxBackoffMs: 200,
  rediscoverMs: 200,
};

const TIMEOUT_MS = 400;

/** Timeouts that no test reaches, also on a slow machine. */
export const CALM = {
  timing: { idleTimeoutMs: 60_000, openTimeoutMs: 60_000, watchMs: [60_000, 60_000] },
  timeoutMs: 60_000,
} as const satisfies ApiSceneOptions;

/** A line of the log. */
type Line = Readonly<Record<string, unknown>> & { readonly level: string; readonly msg: string };

/** The files of the service account in a pod. */
type AccountFiles = {
  readonly put: (file: 'token' | 'ca.crt', text: string) => void;
  readonly hasChanged: () => boolean;
};

/** A source over an API server on loopback and the transport that is used in production. */
export type ApiScene = {
  readonly server: ApiServer;
  readonly store: ResourceStore;
  readonly source: Source;
  readonly transport: KubeTransport;
  readonly changes: readonly Change[];
  readonly failures: readonly unknown[];
  readonly lines: readonly Line[];
  readonly telemetry: SourceTelemetry;
  readonly metrics: Exposition;
  /** The number of pending timers. */
  readonly timers: () => number;
  readonly account: AccountFiles;
  readonly close: () => Promise<void>;
};

export type ApiSceneOptions = {
  readonly kinds?: readonly ResourceKind[];
  readonly timing?: Partial<Timing>;
  /** Of requests. */
  readonly timeoutMs?: number;
};

/** Creates the scene; the source is not started. */
export async function openApiScene(options: ApiSceneOptions = {}): Promise<ApiScene> {
  const { kinds = ['MeshEndpoints'], timing = {} } = options;
  const { timeoutMs = TIMEOUT_MS } = options;
  const server = new ApiServer();
  const port = await server.listen();
  const folder = mkdtempSync(join(tmpdir(), 'api-scene-'));
  const account = accountIn(folder, server.settings.token);
  const [changes, failures, lines]: [Change[], unknown[], Line[]] = [[], [], []];
  const store = new ResourceStore([], failure => failures.push(failure));
  store.subscribe(change => changes.push(change));
  const transport = await transportTo(port, folder, timeoutMs);
  const metrics = createRegistry({ metrics: sourceMetrics, version: 'test', known: { kind: kinds } });
  const write = (line: string) => void lines.push(JSON.parse(line) as Line);
  const log = createLog({ level: 'info', to: { write } });
  const telemetry = { log, metrics, activities: createActivities() };
  const { clock, timers } = countedClock();
  const source = createSource({
    transport,
    kinds,
    store,
    telemetry,
    clock,
    random: Math.random,
    timing: { ...QUICK, ...timing },
    reportFailure: failure => failures.push(failure),
  });
  const close = async () => {
    await source.close();
    await transport.close();
    await server.close();
    rmSync(folder, { recursive: true });
  };
  return {
    server,
    store,
    source,
    transport,
    changes,
    failures,
    lines,
    telemetry,
    metrics,
    timers,
    account,
    close,
  };
}

function accountIn(folder: string, token: string): AccountFiles {
  writeFileSync(join(folder, 'token'), token);
  writeFileSync(join(folder, 'ca.crt'), AUTHORITY.ca);
  let hasNew = false;
  const put = (file: string, text: string) => {
    writeFileSync(join(folder, file), text);
    hasNew = true;
  };
  return { put, hasChanged: () => hasNew };
}

/** The system clock, which counts its timers. */
function countedClock(): { readonly clock: Clock; readonly timers: () => number } {
  const waiting = new Set<symbol>();
  const after: Clock['after'] = (ms, call) => {
    const timer = Symbol('timer');
    waiting.add(timer);
    const cancel = systemClock.after(ms, () => {
      waiting.delete(timer);
      call();
    });
    return () => {
      waiting.delete(timer);
      cancel();
    };
  };
  return { clock: { ...systemClock, after }, timers: () => waiting.size };
}

async function transportTo(
  port: number,
  serviceAccountFolder: string,
  timeoutMs: number,
): Promise<KubeTransport> {
  const now = () => new Date();
  const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(port) };
  const configSource = await restConfigSource({
    kubeconfig: '',
    environment,
    clock: systemClock,
    serviceAccountFolder,
  });
  return openTransport({ configSource, clock: systemClock, now, timeoutMs });
}

/** The objects of a kind that the store should have. */
export function expectedObjects(
  { server }: Pick<ApiScene, 'server'>,
  kind: ResourceKind,
): ReadonlyMap<Key, Resource> {
  const version = SERVED[kind].versions.find(each => server.state.versionsOf(kind).includes(each));
  const objects = version === undefined ? [] : server.state.list(kind);
  const found = new Map<Key, Resource>();
  for (const object of objects) {
    const { managedFields: _fields, ...metadata } = object.metadata;
    const decoding = decode({ ...asServed(object, version ?? ''), metadata });
    if (decoding.is === 'resource') found.set(keyOf(refTo(decoding.resource)), decoding.resource);
  }
  return found;
}

/** Expects that the store equals the state of the server. */
export function expectInSync(
  scene: Pick<ApiScene, 'server' | 'store'>,
  kind: ResourceKind = 'MeshEndpoints',
): void {
  const stored = scene.store.list(kind).map(object => [keyOf(refTo(object)), object] as const);
  expect(new Map<Key, Resource>(stored as [Key, Resource][])).toEqual(expectedObjects(scene, kind));
}
