import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startControlApi } from '../lab/control-api/control-api.ts';
import type { ControlApi } from '../lab/control-api/control-api.ts';
import type { Clock } from '../src/api/clock.ts';
import { API_VERSION } from '../src/api/generated/kinds.ts';
import { openTailnets } from '../src/control/tailnets.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { productCommand } from './bundled.ts';
import { median } from './figures.ts';
import type { Figure } from './figures.ts';

const DEVICES = 10_000;
const CALLERS = 1000;
const LISTS = 7;
const INTERVAL_MS = 30_000;
const MEGABYTE = 1024 * 1024;

/**
 * Measures what a tailnet of 10,000 devices costs. The simulator is in the same process, except for the figures of
 * the product.
 */
export async function control(): Promise<readonly Figure[]> {
  const api = await startControlApi();
  try {
    for (let index = 0; index < DEVICES; index++) {
      api.addDevice({ hostname: `web-${index}`, tags: ['tag:web', `tag:port-${index % 100}`] });
    }
    return [...(await listFigures(api)), ...(await productFigures(api))];
  } finally {
    await api.close();
  }
}

async function listFigures(api: ControlApi): Promise<readonly Figure[]> {
  let skippedMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + skippedMs };
  const tailnets = openTailnets({ clock, now: () => new Date(), random: Math.random, userAgent: 'bench' });
  const { id, secret } = api.addClient(['devices:core:read']);
  const source = {
    name: 'example',
    intervalMs: INTERVAL_MS,
    credentials: { kind: 'oauth', clientId: id, clientSecret: secret },
    endpoint: { url: api.url, scopes: [], requestsPerSecond: 5, burst: 10 },
  } as const;
  const took: number[] = [];
  for (let list = 0; list < LISTS; list++) {
    const startedAt = performance.now();
    const views = await Promise.all(Array.from({ length: CALLERS }, () => tailnets.observe(source)));
    took.push(performance.now() - startedAt);
    if (views.some(({ devices }) => devices?.length !== DEVICES)) throw new Error('devices are missing');
    skippedMs += INTERVAL_MS;
  }
  tailnets.close();
  const lists = (api.countByRoute()['devices.list'] ?? 0) / LISTS;
  return [
    {
      name: `list of ${DEVICES} devices read, decoded and compared, simulator included`,
      value: median(took),
      unit: 'ms',
      aim: 300,
    },
    { name: `lists in an interval with ${CALLERS} callers`, value: lists, unit: 'lists', aim: 1 },
  ];
}

/** Standalone is the operator and the extension server in one process. */
async function productFigures(api: ControlApi): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-bench-'));
  const resources = join(folder, 'resources');
  mkdirSync(resources);
  const tailnet = { tailnet: 'example.ts.net', controlURL: api.url };
  const object = {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'example' },
    spec: tailnet,
  };
  writeFileSync(join(resources, 'tailnet.json'), JSON.stringify(object));
  const { id, secret } = api.addClient(['devices:core:read']);
  const anywhere = '127.0.0.1:0';
  const [program = '', ...args] = productCommand();
  const startedAt = performance.now();
  const child = spawn(program, [...args, 'standalone'], {
    env: {
      RESOURCES_DIR: resources,
      STATE_DIR: join(folder, 'state'),
      GATEWAY_DIR: join(folder, 'gateway'),
      METRICS_ADDRESS: anywhere,
      HEALTH_ADDRESS: anywhere,
      GRPC_ADDRESS: anywhere,
      MESH_OAUTH_CLIENT_ID: id,
      MESH_OAUTH_CLIENT_SECRET: secret,
      EXTENSION_SERVER_ADDRESS: '127.0.0.1:5005',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let metricsPort = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      const entry = JSON.parse(line) as { readonly msg: string; readonly metricsPort?: number };
      metricsPort = entry.metricsPort ?? metricsPort;
      if (entry.msg === 'authenticated with the control API') break;
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
    const text = await response.text();
    const valueOf = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    const known = valueOf('mesh_gateway_tailnet_devices{tailnet="example",state="online"}');
    if (known !== DEVICES) throw new Error(`standalone knows ${known} devices`);
    const bytes = valueOf('process_resident_memory_bytes');
    return [
      { name: 'start of standalone until it is authenticated', value: seconds, unit: 's', aim: 2 },
      { name: `memory of standalone with ${DEVICES} devices`, value: bytes / MEGABYTE, unit: 'MB', aim: 200 },
    ];
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}
