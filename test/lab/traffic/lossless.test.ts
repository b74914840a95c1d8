import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readClusters, requestThrough } from '../../../lab/gateway/envoy.ts';
import { withLogTail } from '../../../lab/process/process.ts';
import { until } from '../../../lab/process/wait.ts';
import { foreignChanges } from '../../support/lab/traffic/lossless/differences.ts';
import { startMixedWorld } from '../../support/lab/traffic/lossless/mixed-world.ts';
import type { MixedWorld } from '../../support/lab/traffic/lossless/mixed-world.ts';
import type { HookCall } from '../../support/lab/traffic/lossless/recorded.ts';
import { READ_WITHIN_MS } from '../../support/lab/traffic/gateway-reads.ts';
import { textIn, valuesOf } from '../../support/lab/traffic/lossless/wire-fields.ts';

const SIZE = { http: 80, grpc: 40, tls: 60 };

let world: MixedWorld;
beforeAll(async () => {
  world = await startMixedWorld(SIZE);
  await untilStatus('mesh-http.test', 200);
});
afterAll(async () => {
  await world.end();
});

const statusOf = async (host: string) =>
  (await requestThrough(world.gateway.listeners.http, { host, path: '/hello' })).status;

async function untilStatus(host: string, wanted: number): Promise<void> {
  const poll = async (note: (seen: string) => void) => {
    const status = await statusOf(host);
    note(`status ${status}`);
    return status === wanted;
  };
  await withLogTail(world.gateway, until(`${host} to be answered`, poll, { timeoutMs: READ_WITHIN_MS }));
}

const callsOf = (hook: string) => world.recorded.calls.filter(call => call.hook === hook);
const isOurs = (name: string) => /^(http|grpc|tls|tcp|udp)route\/default\/mesh-/.test(name);
/** The translation with the most clusters, which has everything. */
const translation = (): HookCall => {
  const all = callsOf('PostTranslateModify').toSorted(
    (one, other) => other.request.length - one.request.length,
  );
  if (!all[0]) throw new Error('nothing was translated');
  return all[0];
};

/** The clusters of the request and the response, by name. */
function pairsOf({ request, answer }: HookCall, fromField: number, toField: number) {
  const after = valuesOf(answer, toField);
  return valuesOf(request, fromField).map((before, index) => ({
    name: textIn(before, 1),
    before,
    after: after[index] ?? Buffer.from('missing'),
  }));
}

describe('a large configuration of others, with a few routes to the mesh', () => {
  it('is translated as a whole: hundreds of clusters of all kinds of routes', () => {
    const names = pairsOf(translation(), 2, 1).map(({ name }) => name);
    const kinds = ['http', 'grpc', 'tls', 'tcp', 'udp'].map(kind => `${kind}route/`);
    const counts = kinds.map(kind => names.filter(name => name.startsWith(kind)).length);
    expect(names.length).toBeGreaterThan(300);
    expect(Math.min(...counts)).toBeGreaterThan(20);
    expect(names.filter(isOurs)).toHaveLength(8);
  });

  it('keeps every cluster and every list, in its order', () => {
    for (const call of callsOf('PostTranslateModify')) {
      const lists = [2, 3, 4, 5].map(field => valuesOf(call.request, field).length);
      expect([1, 2, 3, 4].map(field => valuesOf(call.answer, field).length)).toEqual(lists);
      const pairs = pairsOf(call, 2, 1);
      expect(pairs.map(({ after }) => textIn(after, 1))).toEqual(pairs.map(({ name }) => name));
    }
  });

  it('passes through the hook byte for byte without mesh backends', () => {
    const clusters = callsOf('PostTranslateModify').flatMap(call => pairsOf(call, 2, 1));
    const others = clusters.filter(({ name }) => !isOurs(name));
    const changed = others.filter(({ before, after }) => !before.equals(after)).map(({ name }) => name);
    expect(others.length).toBeGreaterThan(290);
    expect(changed).toEqual([]);
  });

  it('needs one kind of hook call for any number of routes', () => {
    expect([...new Set(world.recorded.calls.map(({ hook }) => hook))]).toEqual(['PostTranslateModify']);
  });

  it('is changed for each route to the mesh, in our fields only', () => {
    const ours = pairsOf(translation(), 2, 1).filter(({ name }) => isOurs(name));
    const strange = ours.flatMap(({ name, before, after }) =>
      foreignChanges(before, after).map(change => `${name}: ${change}`),
    );
    const unchanged = ours.filter(({ before, after }) => before.equals(after));
    expect(ours).toHaveLength(8);
    expect(unchanged.map(({ name }) => name)).toEqual([]);
    expect(strange).toEqual([]);
  });

  it('returns the same bytes when it is translated again', async () => {
    const again = await Promise.all(world.recorded.calls.map(call => world.recorded.again(call)));
    const different = world.recorded.calls.filter(
      (call, index) => !Buffer.from(again[index] ?? []).equals(call.answer),
    );
    expect(different.map(({ hook }) => hook)).toEqual([]);
  });

  it('is accepted by Envoy Gateway and by Envoy', async () => {
    const refused = readFileSync(world.gateway.log, 'utf8')
      .split('\n')
      .filter(line => /\terror\t/.test(line) && !line.includes('invalid backendRef'));
    const stats = await (await fetch(`${world.gateway.admin}/stats?filter=update_rejected`)).text();
    const rejected = stats.split('\n').filter(line => /[^:]+: [1-9]/.test(line));
    expect({ refused, rejected }).toEqual({ refused: [], rejected: [] });
    // A cluster is listed once it is warm, and some resolve names for that.
    const untilAll = async (note: (seen: string) => void) => {
      const known = (await readClusters(world.gateway.admin)).map(({ name }) => name);
      const missing = pairsOf(translation(), 2, 1).filter(({ name }) => !known.includes(name));
      note(missing.map(({ name }) => name).join(' '));
      return missing.length === 0;
    };
    expect(await until('Envoy to have all clusters', untilAll)).toBe(true);
  });

  it('carries traffic, with and without the mesh', async () => {
    const hosts = ['plain.test', 'mesh-http.test'];
    expect(await Promise.all(hosts.map(statusOf))).toEqual([200, 200]);
  });
});
