import { EventEmitter, once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { Profile } from 'pprof-format';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createActivities } from '../../src/telemetry/activity.ts';
import { serve } from '../../src/telemetry/http.ts';
import type { RunningServers } from '../../src/telemetry/http.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { pprofRoutes } from '../../src/telemetry/pprof.ts';
import { watchHeap } from '../../src/telemetry/profile-heap.ts';
import type { HeapWatch } from '../../src/telemetry/profile-heap.ts';
import type { Route } from '../../src/telemetry/http.ts';
import { readProfile, topOf, valueAt } from '../support/telemetry/pprof.ts';

const log = createLog({ level: 'debug', to: { write: () => undefined } });
const activities = createActivities();
let heap: HeapWatch;
let servers: RunningServers;
let url: string;

beforeAll(async () => {
  heap = await watchHeap();
  const address = { host: '127.0.0.1', port: 0 };
  servers = await serve(
    [{ setting: 'METRICS_ADDRESS', address, routes: pprofRoutes({ heap, activities }) }],
    log,
  );
  url = `http://127.0.0.1:${servers.ports[0] ?? 0}/debug/pprof`;
});

afterAll(async () => {
  await servers.close();
  heap.stop();
});

async function profileAt(path: string) {
  const response = await fetch(`${url}${path}`);
  const body = new Uint8Array(await response.arrayBuffer());
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
  return { body, profile: readProfile(body) };
}

function computeSquareRoots(count: number): number {
  let sum = 0;
  for (let index = 0; index < count; index++) sum += Math.sqrt(index);
  return sum;
}

/** Keeps the process computing, with pauses for responses, until a promise resolves. */
async function workUntil<T>(promise: Promise<T>): Promise<T> {
  const work = setInterval(computeSquareRoots, 1, 3_000_000);
  return promise.finally(() => clearInterval(work));
}

const BYTES_EACH = 8 * 128;

/** Lists of 128 numbers, each of which takes 8 bytes. */
function allocateLists(count: number): unknown[] {
  return Array.from({ length: count }, function fillList() {
    return new Array<number>(128).fill(7);
  });
}

describe('the CPU profile', () => {
  it('shows most of the time in the function that computed, with its file and lines', async () => {
    // V8 optimizes the function before the profile begins, and again while it is taken.
    await workUntil(wait(300));
    const { profile } = await workUntil(profileAt('/profile?seconds=1'));
    expect(profile.kinds).toEqual(['samples/count', 'cpu/nanoseconds']);
    expect(profile.defaultKind).toBe('cpu');
    expect(topOf(profile, 'cpu/nanoseconds')).toBe('computeSquareRoots');
    expect(topOf(profile, 'samples/count')).toBe('computeSquareRoots');
    const total = profile.samples.reduce((sum, { values }) => sum + (values[1] ?? 0), 0);
    const ours = valueAt(profile, 'cpu/nanoseconds', 'computeSquareRoots', 'top');
    expect(ours / total).toBeGreaterThan(0.5);
    expect(total).toBeGreaterThan(0.2e9);
    expect(total).toBeLessThanOrEqual(profile.durationNs * 1.05);
    expect(profile.durationNs).toBeGreaterThanOrEqual(0.99e9);
    expect(valueAt(profile, 'cpu/nanoseconds', 'listOnTimeout', 'anywhere')).toBeGreaterThanOrEqual(ours);
    const frames = profile.samples.flatMap(({ stack: [top] }) =>
      top?.name === 'computeSquareRoots' ? [top] : [],
    );
    expect(new Set(frames.map(({ file }) => file))).toEqual(new Set([import.meta.filename]));
    expect(Math.min(...frames.map(({ line }) => line))).toBeGreaterThan(0);
  });

  it('shows no work where there was none', async () => {
    const { profile } = await profileAt('/profile?seconds=1');
    expect(valueAt(profile, 'cpu/nanoseconds', '(idle)', 'anywhere')).toBe(0);
    expect(valueAt(profile, 'cpu/nanoseconds', 'computeSquareRoots', 'anywhere')).toBe(0);
  });

  it.each(['0', '-1', '61', '1e9', '1.5', 'NaN', 'a', ' ', '0x10000'])(
    'is not taken of %j seconds',
    async seconds => {
      const response = await fetch(`${url}/profile?seconds=${encodeURIComponent(seconds)}`);
      expect([response.status, await response.text()]).toEqual([
        400,
        'seconds must be a whole number from 1 to 60\n',
      ]);
    },
  );

  it('runs one at a time, and the next can start once the client of the first has disconnected', async () => {
    const [route] = pprofRoutes({ heap, activities }).filter(({ path }) => path.endsWith('/profile'));
    const ask = (seconds: number, signal: AbortSignal) =>
      Promise.resolve(route?.handle({ query: new URLSearchParams({ seconds: `${seconds}` }), signal }));
    const waiting = new AbortController();
    const first = ask(60, waiting.signal);
    const busy = 'this profile is already being taken; retry when it is done\n';
    expect(await ask(1, new AbortController().signal)).toMatchObject({ status: 409, body: busy });
    waiting.abort();
    await expect(first).rejects.toThrow('aborted');
    expect(await ask(1, new AbortController().signal)).toMatchObject({ status: 200 });
  });

  it('does not keep the process from stopping', async () => {
    const requests = new EventEmitter();
    const routes = pprofRoutes({ heap, activities }).map(({ path, handle: answer }): Route => {
      const noted: Route['handle'] = question => {
        requests.emit('requested');
        return answer(question);
      };
      return { path, handle: noted };
    });
    const address = { host: '127.0.0.1', port: 0 };
    const own = await serve([{ setting: 'METRICS_ADDRESS', address, routes }], log);
    const response = fetch(`http://127.0.0.1:${own.ports[0] ?? 0}/debug/pprof/profile?seconds=60`);
    await once(requests, 'requested');
    await own.close();
    expect((await response).status).toBe(503);
  });
});

describe('the heap profile', () => {
  it('shows memory in use where it was allocated, and no freed memory', async () => {
    const count = 60_000;
    const kept = allocateLists(count);
    const { profile } = await profileAt('/heap?gc=1');
    const space = valueAt(profile, 'inuse_space/bytes', 'allocateLists', 'anywhere');
    expect(kept).toHaveLength(count);
    expect(space).toBeGreaterThan(0.5 * count * BYTES_EACH);
    expect(space).toBeLessThan(2 * count * BYTES_EACH);
    expect(valueAt(profile, 'samples/count', 'allocateLists', 'anywhere')).toBeGreaterThan(0);
    expect(profile.defaultKind).toBe('inuse_space');
    const frames = profile.samples.flatMap(({ stack }) => stack.filter(({ name }) => name === 'fillList'));
    expect(new Set(frames.map(({ file }) => file))).toEqual(new Set([import.meta.filename]));
    kept.length = 0;
    const after = await profileAt('/heap?gc=1');
    expect(valueAt(after.profile, 'inuse_space/bytes', 'allocateLists', 'anywhere')).toBeLessThan(space / 4);
  });

  it('has no sample without a value', async () => {
    const kept = allocateLists(30_000);
    const { profile } = await profileAt('/heap');
    expect(kept).toHaveLength(30_000);
    expect(profile.samples.length).toBeGreaterThan(0);
    expect(profile.samples.filter(({ values }) => !((values[1] ?? 0) > 0))).toEqual([]);
    expect(
      profile.samples.filter(({ stack }) => stack.some(({ name }) => name.startsWith('missing'))),
    ).toEqual([]);
  });

  it('documents its values', async () => {
    const { profile } = await profileAt('/heap');
    expect(profile.comments.join()).toMatch(/Buffers/);
  });

  it('is read alike by the library that wrote it', async () => {
    const { body, profile } = await profileAt('/heap');
    const decoded = Profile.decode(gunzipSync(body));
    expect(decoded.sample.map(({ value }) => value.map(Number))).toEqual(
      profile.samples.map(({ values }) => values),
    );
    expect(decoded.timeNanos).toBeTypeOf('bigint');
    expect(Math.abs(Number(decoded.timeNanos) / 1e6 - Date.now())).toBeLessThan(60_000);
  });
});

describe('what runs and waits', () => {
  it('is text for any value of debug, with a note that these are not goroutines', async () => {
    const end = activities.add('reconciles', () => [
      { what: 'MeshEndpoints/default/a', state: 'running', forMs: 1234 },
      { what: 'MeshEndpoints/default/b', state: 'waiting' },
      { what: 'MeshEndpoints/default/c', state: 'running', forMs: 5000 },
    ]);
    const response = await fetch(`${url}/goroutine?debug=1`);
    const text = await response.text();
    end();
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(text).toMatch(/^Node has no goroutines: these are the things that run or wait/);
    expect(text).toMatch(/\nevent loop: \d+\n(.*\n)*? {2}(\d+ x )?TCPServerWrap\n/);
    expect(text).toContain(
      [
        'reconciles: 3',
        '  MeshEndpoints/default/c running for 5.0 s',
        '  MeshEndpoints/default/a running for 1.2 s',
        '  MeshEndpoints/default/b waiting\n',
      ].join('\n'),
    );
  });

  it('is bounded, hides secrets, and lists parts that throw as unknown', async () => {
    const ends = [
      activities.add('broken', () => {
        throw new Error('no');
      }),
      activities.add('many', () =>
        Array.from({ length: 100_000 }, (_, index) => ({ what: `key ${index}`, state: 'waiting' })),
      ),
      activities.add('leaky', () => [{ what: 'https://u:hunter2@host\nx', state: 'open' }]),
    ];
    const text = await (await fetch(`${url}/goroutine?debug=2`)).text();
    for (const end of ends) end();
    expect(text).toContain('broken: 1\n  the activities of this part cannot be read unknown\n');
    expect(text).toContain('many: 100000\n');
    expect(text).toContain('and 99000 more lines');
    expect(text).toContain('  https://[redacted]@host x open\n');
    expect(text.length).toBeLessThan(100_000);
  });
});

describe('the index', () => {
  it('names each profile, and each exists', async () => {
    const [text = '', withSlash] = await Promise.all(
      ['', '/'].map(async path => (await fetch(`${url}${path}`)).text()),
    );
    expect(withSlash).toBe(text);
    const named = [...text.matchAll(/^\/debug\/pprof\/(\w+)$/gm)].map(([, name]) => name);
    expect(named).toEqual(['heap', 'profile', 'goroutine']);
    const statuses = await Promise.all(
      named.map(async name => (await fetch(`${url}/${name ?? ''}?seconds=1`)).status),
    );
    expect(statuses).toEqual([200, 200, 200]);
  });

  it.each(['', '/', '/heap', '/profile', '/goroutine'])(
    'and %j are a hint where profiling is off',
    async path => {
      const address = { host: '127.0.0.1', port: 0 };
      const own = await serve([{ setting: 'METRICS_ADDRESS', address, routes: pprofRoutes('off') }], log);
      const response = await fetch(`http://127.0.0.1:${own.ports[0] ?? 0}/debug/pprof${path}`);
      const text = await response.text();
      await own.close();
      expect([response.status, text]).toEqual([404, 'profiling is off: start the process with PPROF=on\n']);
    },
  );
});
