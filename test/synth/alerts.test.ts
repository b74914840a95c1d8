import { describe, expect, it } from 'vitest';
import { alerts } from '../../synth/monitoring/alerts.ts';
import { at } from '../support/synth/parts.ts';
import { expectAlert, lacksPromtool, runPromtool } from '../support/synth/promtool.ts';
import type { Series } from '../support/synth/promtool.ts';
import { objectOf, objectsIn, synthesized } from '../support/synth/synthesized.ts';

const rules = at(objectOf(objectsIn(synthesized({})), 'PrometheusRule'), 'spec') as object;

const OPERATOR = 'job="mesh-operator"';
const SERVER = 'job="mesh-extension-server"';

const reconciles = (ended: string, failed: string): Series => ({
  [`controller_runtime_reconcile_total{${OPERATOR}, controller="a", result="success"}`]: ended,
  [`controller_runtime_reconcile_total{${OPERATOR}, controller="a", result="error"}`]: failed,
  [`controller_runtime_reconcile_errors_total{${OPERATOR}, controller="a"}`]: failed,
});
const declaredMemory = (limit: string): Series => ({
  [`container_memory_working_set_bytes{namespace="mesh-system", pod="a", container="manager", id="b"}`]:
    '900x40',
  [`kube_pod_container_resource_limits{namespace="mesh-system", pod="a", container="manager", resource="memory", unit="byte"}`]:
    limit,
  [`kube_pod_container_resource_limits{namespace="mesh-system", pod="a", container="manager", resource="cpu", unit="core"}`]:
    '1x40',
});
const memory = (used: string, limit: string, namespace = 'mesh-system', container = 'manager'): Series => ({
  [`container_memory_working_set_bytes{namespace="${namespace}", pod="a", container="${container}"}`]: used,
  [`container_spec_memory_limit_bytes{namespace="${namespace}", pod="a", container="${container}"}`]: limit,
});
const up = (pod: string, values: string): Series => ({ [`up{${SERVER}, pod="${pod}"}`]: values });
const leads = (pod: string, values: string): Series => ({
  [`leader_election_master_status{${OPERATOR}, name="mesh-operator", pod="${pod}"}`]: values,
});
const answers = (answer: string, values: string): Series => ({
  [`mesh_gateway_eds_answers_total{${SERVER}, pod="a", answer="${answer}"}`]: values,
});
const members = (tailnet: string, state: string, values: string): Series => ({
  [`mesh_gateway_pool_members{${OPERATOR}, pod="a", tailnet="${tailnet}", state="${state}"}`]: values,
});
const failures = (hook: string, values: string): Series => ({
  [`mesh_gateway_hook_failures_total{${SERVER}, pod="a", hook="${hook}"}`]: values,
});

const health = (endpoint: string, values: string, pod = 'a'): Series => ({
  [`mesh_gateway_endpoint_healthy{${OPERATOR}, pod="${pod}", namespace="shop", name="web", endpoint="${endpoint}"}`]:
    values,
});
const datagrams = (result: string, values: string): Series => ({
  [`mesh_gateway_relay_packets_total{job="mesh-relay", tailnet="home", direction="to_mesh", result="${result}"}`]:
    values,
});
const drops = (reason: string, values: string): Series => ({
  [`mesh_gateway_relay_dropped_total{job="mesh-relay", tailnet="home", reason="${reason}"}`]: values,
});

const refusals = (reason: string, values: string): Series => ({
  [`mesh_gateway_front_refused_total{job="mesh-relay", tailnet="home", pod="a", reason="${reason}"}`]: values,
});

type Case = readonly [alert: string, when: string, series: Series, at: string, times: number];

const RATE = 'HighReconciliationErrorRate';
const DOWN = 'ExtensionServerDown';
const MEMORY = 'HighMemoryUsage';
const LEADER = 'NoOperatorLeads';
const REFUSED = 'EndpointsRefusedByEnvoy';
const HOOKS = 'HookFailures';
const POOL = 'MeshPoolDegraded';
const UNHEALTHY = 'MeshEndpointUnhealthy';
const RELAY = 'RelayDropsDatagrams';
const PROXY = 'MeshProxyRefusesConnections';

const CASES: readonly Case[] = [
  [RATE, 'a fifth fails for longer than 10 minutes', reconciles('0+4x40', '0+1x40'), '11m', 1],
  [RATE, 'a fifth fails, but not long enough', reconciles('0+4x40', '0+1x40'), '10m', 0],
  [RATE, 'exactly a tenth fails', reconciles('0+9x60', '0+1x60'), '25m', 0],
  [RATE, 'a little more than a tenth fails', reconciles('0+890x60', '0+110x60'), '25m', 1],
  [RATE, 'nothing fails', reconciles('0+9x60', '0x60'), '25m', 0],
  [RATE, 'nothing is reconciled', reconciles('5x60', '5x60'), '25m', 0],
  [RATE, 'there is no operator', {}, '25m', 0],
  [
    RATE,
    'another program fails',
    { [`controller_runtime_reconcile_errors_total{job="b"}`]: '0+1x60' },
    '25m',
    0,
  ],
  [RATE, 'it failed for 5 minutes and then no more', reconciles('0+4x80', '0+1x10 10x70'), '25m', 0],

  [
    RELAY,
    'two of a hundred are dropped',
    { ...datagrams('forwarded', '0+98x60'), ...datagrams('dropped', '0+2x60'), ...drops('a', '0+2x60') },
    '20m',
    1,
  ],
  [
    RELAY,
    'fewer than one of a hundred are dropped',
    { ...datagrams('forwarded', '0+999x60'), ...drops('a', '0+9x60') },
    '20m',
    0,
  ],
  [RELAY, 'there is no relay', {}, '20m', 0],
  [RELAY, 'no datagrams pass', { ...datagrams('forwarded', '5x60'), ...drops('a', '0x60') }, '20m', 0],

  [
    PROXY,
    'it refuses 24 strangers a minute for longer than 10 minutes',
    refusals('caller', '0+12x60'),
    '20m',
    1,
  ],
  [
    PROXY,
    'it refuses for two reasons',
    { ...refusals('caller', '0+12x60'), ...refusals('destination', '0+12x60') },
    '20m',
    2,
  ],
  [PROXY, 'it refuses 4 a minute', refusals('caller', '0+2x60'), '20m', 0],
  [PROXY, 'it refused for 5 minutes and then no more', refusals('destination', '0+12x5 60x60'), '20m', 0],
  [PROXY, 'there is none', {}, '20m', 0],

  [DOWN, 'it is down for 3 minutes', up('a', '1 0x20'), '3m30s', 1],
  [DOWN, 'it is down, but not long enough', up('a', '1 0x20'), '3m', 0],
  [DOWN, 'one of two is down', { ...up('a', '1x20'), ...up('b', '0x20') }, '5m', 1],
  [DOWN, 'all are up', { ...up('a', '1x20'), ...up('b', '1x20') }, '5m', 0],
  [DOWN, 'it came back', up('a', '1 0 0 0 0 1x20'), '5m', 0],
  [DOWN, 'there is none', {}, '3m', 1],
  [DOWN, 'there is none, but not long enough', {}, '2m30s', 0],
  [DOWN, 'only others are up', { 'up{job="b"}': '1x20' }, '5m', 1],

  [MEMORY, 'it uses nine tenths', memory('900x40', '1000x40'), '10m', 1],
  [MEMORY, 'it uses nine tenths, but not long enough', memory('900x40', '1000x40'), '9m30s', 0],
  [MEMORY, 'it uses exactly eight tenths', memory('800x40', '1000x40'), '15m', 0],
  [MEMORY, 'it has no limit', memory('900x40', '0x40'), '15m', 0],
  [
    MEMORY,
    'it uses nine tenths of a limit that only kube-state-metrics reports',
    declaredMemory('1000x40'),
    '10m',
    1,
  ],
  [MEMORY, 'it uses little of such a limit', declaredMemory('9000x40'), '15m', 0],
  [MEMORY, 'its memory is not measured', {}, '15m', 0],
  [MEMORY, 'another container does', memory('900x40', '1000x40', 'mesh-system', 'other'), '15m', 0],
  [MEMORY, 'another program named manager does', memory('900x40', '1000x40', 'other'), '15m', 0],

  [LEADER, 'none leads for 5 minutes', { ...leads('a', '0x20'), ...leads('b', '0x20') }, '5m', 1],
  [LEADER, 'none leads, but not long enough', { ...leads('a', '0x20'), ...leads('b', '0x20') }, '4m30s', 0],
  [LEADER, 'one leads', { ...leads('a', '0x20'), ...leads('b', '1x20') }, '8m', 0],
  [LEADER, 'another took over', { ...leads('a', '1x4 0x20'), ...leads('b', '0x4 1x20') }, '8m', 0],
  [
    LEADER,
    'one leads something else',
    { [`leader_election_master_status{${OPERATOR}, name="mesh-binding"}`]: '1x20' },
    '8m',
    1,
  ],
  [LEADER, 'there is no operator', {}, '5m', 1],

  [REFUSED, 'Envoy refuses again and again', answers('nack', '0+1x40'), '6m', 1],
  [REFUSED, 'Envoy refuses, but not long enough', answers('nack', '0+1x40'), '5m', 0],
  [REFUSED, 'Envoy refused once', answers('nack', '0 1x40'), '15m', 0],
  [REFUSED, 'Envoy takes everything', { ...answers('ack', '0+9x40'), ...answers('nack', '0x40') }, '15m', 0],
  [REFUSED, 'there is no extension server', {}, '15m', 0],

  [HOOKS, 'a hook fails again and again', failures('translation', '0+1x40'), '6m', 1],
  [HOOKS, 'a hook fails, but not long enough', failures('translation', '0+1x40'), '5m', 0],
  [
    HOOKS,
    'two hooks fail',
    { ...failures('translation', '0+1x40'), ...failures('another', '0+1x40') },
    '6m',
    2,
  ],
  [HOOKS, 'none fails', failures('translation', '3x40'), '15m', 0],
  [HOOKS, 'there is no extension server', {}, '15m', 0],

  [POOL, 'a pod is not ready for 15 minutes', members('one', 'not_ready', '1x40'), '15m', 1],
  [POOL, 'a pod is not ready, but not long enough', members('one', 'not_ready', '1x40'), '14m30s', 0],
  [
    POOL,
    'two tailnets lack pods',
    { ...members('one', 'not_ready', '1x40'), ...members('two', 'not_ready', '2x40') },
    '20m',
    2,
  ],
  [
    POOL,
    'all pods are ready',
    { ...members('one', 'ready', '2x40'), ...members('one', 'not_ready', '0x40') },
    '20m',
    0,
  ],
  [POOL, 'there is no pool', {}, '20m', 0],

  [UNHEALTHY, 'an endpoint is unhealthy for 5 minutes', health('one', '0x20'), '5m', 1],
  [UNHEALTHY, 'an endpoint is unhealthy, but not long enough', health('one', '0x20'), '4m30s', 0],
  [
    UNHEALTHY,
    'two of three endpoints are unhealthy',
    { ...health('one', '0x20'), ...health('two', '0x20'), ...health('three', '1x20') },
    '8m',
    2,
  ],
  [UNHEALTHY, 'an endpoint became healthy again', health('one', '0x8 1x20'), '8m', 0],
  [
    UNHEALTHY,
    'another operator took over',
    { ...health('one', '0x5 stale'), ...health('one', '_x6 0x20', 'b') },
    '5m',
    1,
  ],
  [UNHEALTHY, 'no endpoint is checked', {}, '20m', 0],
];

const SENTENCES = CASES.map(([alert, when, series, moment, times]) => ({
  sentence: `${alert} ${times > 0 ? 'fires' : 'is quiet'} when ${when}`,
  alert,
  series,
  at: moment,
  times,
}));

describe('the alerts', () => {
  it.skipIf(lacksPromtool)('are rules as Prometheus reads them', async () => {
    const output = await runPromtool({ 'rules.yaml': rules }, ['check', 'rules', 'rules.yaml']);
    expect(output).toContain(`SUCCESS: ${alerts('a').length} rules found`);
  });

  it('are all tried: where they fire, where they do not, and without data', () => {
    for (const { alert } of alerts('a')) {
      const own = CASES.filter(([name]) => name === alert);
      expect(
        own.some(([, , , , times]) => times > 0),
        alert,
      ).toBe(true);
      expect(
        own.some(([, , , , times]) => times === 0),
        alert,
      ).toBe(true);
      expect(
        own.some(([, , series]) => Object.keys(series).length === 0),
        alert,
      ).toBe(true);
    }
  });

  it('are those of the contract, and some more', () => {
    expect(alerts('a').map(({ alert, for: hold }) => [alert, hold])).toEqual([
      [RATE, '10m'],
      [DOWN, '3m'],
      [MEMORY, '10m'],
      [LEADER, '5m'],
      [REFUSED, '5m'],
      [HOOKS, '5m'],
      [POOL, '15m'],
      [UNHEALTHY, '5m'],
      [RELAY, '10m'],
      [PROXY, '10m'],
    ]);
  });
});

describe.skipIf(lacksPromtool)('an alert', () => {
  it.each(SENTENCES)('$sentence', async ({ series, ...expected }) => {
    await expectAlert(rules, series, expected);
  });

  it('would be found to fire where it should not', async () => {
    const wrong = expectAlert(rules, {}, { alert: DOWN, at: '5m', times: 0 });
    await expect(wrong).rejects.toThrow('FAILED');
  });
});
