import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { writeResources } from '../../../lab/gateway/resource-files.ts';
import { until } from '../../../lab/process/wait.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { isEqual } from '../../../src/api/json.ts';
import type { ReadResources } from '../../../src/store/resources.ts';
import { eventually, IS_LONG } from '../../support/eventually.ts';
import { CHECK } from '../../support/lab/health/faults.ts';
import { startHttpService } from '../../support/lab/health/services.ts';
import type { HttpService } from '../../support/lab/health/services.ts';
import { standaloneHere } from '../../support/lab/health/standalone-here.ts';
import type { StandaloneHere } from '../../support/lab/health/standalone-here.ts';
import { remoteOf, startTestLab } from '../../support/lab/lab.ts';
import { meshEndpoints, meshTailnet } from '../../support/lab/traffic/objects.ts';

const IDLE_MS = IS_LONG ? 600_000 : 0;
const REFRESH_MS = 600_000;
const OBJECTS = 1_000;
/** Of all checks together, 50 a second. */
const INTERVAL = '20s';

const FAILURES = 'health_check_failure_total';

type Idle = { readonly standalone: StandaloneHere; readonly service: HttpService };

/** Standalone with as many objects, each with one endpoint and a check of its own. */
async function startIdle(): Promise<Idle> {
  const home = mkdtempSync(join(tmpdir(), 'mesh-idle-'));
  const folder = (name: string) => {
    mkdirSync(join(home, name), { mode: 0o700 });
    return join(home, name);
  };
  const [resources, generated, state] = [folder('resources'), folder('generated'), folder('state')];
  const [own, service] = await Promise.all([startTestLab(), startHttpService()]);
  const { address: meshIP, fqdn: meshFQDN } = remoteOf(own.lab, 'web-1');
  const objects = Array.from({ length: OBJECTS }, (_, index) => {
    const healthCheck = { ...CHECK, interval: INTERVAL, timeout: '10s', path: `/check-${index}` };
    const { port } = service;
    const endpoint = { name: 'web', meshIP, meshFQDN, port, protocol: 'HTTP', healthCheck };
    return meshEndpoints(own.lab, `idle-${index}`, [endpoint]);
  });
  writeResources({ resources }, 'objects', [meshTailnet(own.lab, [own.lab.proxy]), ...objects]);
  const options = { resources, generated, state, dataPath: 'Proxy', variables: {} } as const;
  const standalone = await standaloneHere(options);
  onTestFinished(async () => {
    await standalone.end();
    await own.end();
    await service.close();
    rmSync(home, { recursive: true });
  });
  await standalone.start();
  return { standalone, service };
}

/**
 * A write: by how much it moved the time of the last check, and the status before and after it if more than this time
 * differs.
 */
type Write = { readonly name: string; readonly afterMs: number; readonly change?: readonly unknown[] };

/** Collects the writes to the status of MeshEndpoints, and the keys of all other objects that change, from now on. */
function changesIn(read: ReadResources): {
  readonly writes: readonly Write[];
  readonly others: readonly string[];
} {
  const before = new Map(read.list('MeshEndpoints').map(object => [object.metadata.name, object]));
  const writes: Write[] = [];
  const others: string[] = [];
  read.subscribe(({ key }) => {
    if (!key.startsWith('MeshEndpoints')) {
      others.push(key);
      return;
    }
    for (const object of read.list('MeshEndpoints')) {
      const { name } = object.metadata;
      const last = before.get(name);
      if (last === object) continue;
      before.set(name, object);
      const isRefresh = last !== undefined && isEqual(undated(last), undated(object));
      const afterMs = lastCheckedMs(object) - (last ? lastCheckedMs(last) : 0);
      writes.push({ name, afterMs, ...(isRefresh ? {} : { change: [last?.status, object.status] }) });
    }
  });
  return { writes, others };
}

function lastCheckedMs({ status }: Kinds['MeshEndpoints']): number {
  return Date.parse(status?.endpoints?.[0]?.lastChecked ?? '');
}

/** The status without the times of checks. */
function undated({ status }: Kinds['MeshEndpoints']): unknown {
  return { ...status, endpoints: status?.endpoints?.map(({ lastChecked: _, ...entry }) => entry) };
}

it('1,000 idle objects are checked without a log line, and written only to refresh lastChecked after 10 minutes', async () => {
  const { standalone, service } = await startIdle();
  const read = standalone.read();
  const isHealthy = ({ status }: Kinds['MeshEndpoints']) => status?.endpoints?.[0]?.status === 'Healthy';
  const areHealthy = (note: (seen: string) => void) => {
    const objects = read.list('MeshEndpoints');
    note(`${objects.filter(isHealthy).length} healthy`);
    return objects.every(isHealthy);
  };
  await until('all objects to be healthy', areHealthy, { everyMs: 250 });
  const { writes, others } = changesIn(read);
  const failures = async () =>
    [...(await standalone.metrics())].filter(([series]) => series.startsWith(FAILURES));
  const failuresBefore = await failures();
  const checksBefore = service.received.length;
  const linesBefore = standalone.lines.length;
  await sleep(IDLE_MS);
  // The short form is over when every object was checked once more.
  await eventually(() => expect(service.received.length - checksBefore).toBeGreaterThan(OBJECTS));
  expect(await failures()).toEqual(failuresBefore);
  expect(standalone.lines.slice(linesBefore)).toEqual([]);
  expect(others).toEqual([]);
  expect(writes.filter(({ change }) => change)).toEqual([]);
  expect(Math.min(...writes.map(({ afterMs }) => afterMs))).toBeGreaterThanOrEqual(REFRESH_MS);
});
