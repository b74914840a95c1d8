import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { QUICKSTART_HOST } from '../../../lab/quickstart/quickstart.ts';
import { until } from '../../../lab/process/wait.ts';
import { requestWeb, startQuickstart } from '../../support/lab/quickstart.ts';
import type { RunningQuickstart } from '../../support/lab/quickstart.ts';
import { generatedIn } from '../../support/standalone/generated.ts';

/** A second removal is applied after the first. */
const SOON = { everyMs: 20 };

let running: RunningQuickstart;
let remove = () => Promise.resolve();

beforeAll(async () => {
  running = await startQuickstart();
  remove = running.remove;
});

afterAll(() => remove());

function untilStatus(wanted: number, host?: string, headers?: Readonly<Record<string, string>>) {
  return until(
    `status ${wanted}`,
    async note => {
      const { status, body } = await requestWeb(host, headers);
      note(`${status} ${body.slice(0, 100)}`);
      return status === wanted;
    },
    SOON,
  );
}

/** Waits until Envoy Gateway has the route under `count` names. */
function untilNames(count: number) {
  const folder = join(running.state, 'envoy-gateway');
  return until(
    `${count} names`,
    note => {
      const text = generatedIn(folder).get('HTTPRoute/default/web') ?? '';
      note(text);
      return Promise.resolve(text.split('\n---\n').length === count);
    },
    SOON,
  );
}

/** Sends requests until it is stopped; returns how often each status came. */
function load(headers: Readonly<Record<string, string>> = {}) {
  const statuses = new Map<number | string, number>();
  const over = new AbortController();
  const askOnce = async () => {
    const status = await requestWeb(QUICKSTART_HOST, headers).then(
      answer => answer.status,
      (error: unknown) => String(error),
    );
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  const askers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      await askOnce();
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  });
  return {
    end: async () => {
      over.abort();
      await Promise.all(askers);
      return Object.fromEntries(statuses);
    },
  };
}

const OTHER = 'other.example.com';
const withoutHosts = (text: string) => text.replace(/ {2}hostnames:\n {4}- web\.example\.com\n/, '');

const policy = (kind: string, spec: object, target: object = { kind: 'HTTPRoute', name: 'web' }) =>
  JSON.stringify({
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind,
    metadata: { name: 'web', namespace: 'default' },
    spec: { targetRefs: [{ group: 'gateway.networking.k8s.io', ...target }], ...spec },
  });

describe('a field that is removed from a declaration', () => {
  it('is removed from a route, and no request fails', async () => {
    const { end } = load();
    expect((await requestWeb(OTHER)).status).toBe(404);
    running.edit(withoutHosts);
    expect(await untilStatus(200, OTHER)).toBe(true);
    // Until only the new name is left.
    expect(await untilNames(1)).toBe(true);
    const statuses = await end();
    console.log('statuses while a route lost its hostnames:', JSON.stringify(statuses));
    expect(Object.keys(statuses)).toEqual(['200']);
    running.restore();
    expect(await untilStatus(404, OTHER)).toBe(true);
  });

  it('is removed from a policy', async () => {
    const faultInjection = { abort: { httpStatus: 418, percentage: 100 } };
    const loadBalancer = { type: 'RoundRobin' };
    running.declare('policy.yaml', policy('BackendTrafficPolicy', { faultInjection, loadBalancer }));
    expect(await untilStatus(418)).toBe(true);
    running.declare('policy.yaml', policy('BackendTrafficPolicy', { loadBalancer }));
    expect(await untilStatus(200)).toBe(true);
    running.declare('policy.yaml', policy('BackendTrafficPolicy', { faultInjection }));
    expect(await untilStatus(418)).toBe(true);
    running.declare('policy.yaml', '');
    expect(await untilStatus(200)).toBe(true);
  });

  it('is removed from a Secret, and a policy applies to its route at every moment', async () => {
    const secret = (data: object) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'keys', namespace: 'default' },
        data,
      });
    const guard = policy('SecurityPolicy', {
      apiKeyAuth: { credentialRefs: [{ name: 'keys' }], extractFrom: [{ headers: ['x-key'] }] },
    });
    const [one, two] = [{ one: btoa('first') }, { two: btoa('second') }];
    running.declare('secret.yaml', `${secret({ ...one, ...two })}\n---\n${guard}`);
    expect(await untilStatus(401)).toBe(true);
    expect(await untilStatus(200, QUICKSTART_HOST, { 'x-key': 'second' })).toBe(true);
    running.declare('secret.yaml', `${secret(one)}\n---\n${guard}`);
    expect(await untilStatus(401, QUICKSTART_HOST, { 'x-key': 'second' })).toBe(true);
    expect(await untilStatus(200, QUICKSTART_HOST, { 'x-key': 'first' })).toBe(true);

    const { end } = load({ 'x-key': 'wrong' });
    running.edit(withoutHosts);
    expect(await untilStatus(401, OTHER)).toBe(true);
    running.restore();
    expect(await untilStatus(404, OTHER)).toBe(true);
    expect(Object.keys(await end())).toEqual(['401']);
    running.declare('secret.yaml', '');
    expect(await untilStatus(200)).toBe(true);
  });
});
