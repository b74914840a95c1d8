import { describe, expect, it } from 'vitest';
import { REASONS } from '../../src/api/reasons.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeRequest } from '../../src/kubernetes/transport/transport.ts';
import { diagnose } from '../../src/tools/doctor/diagnose.ts';
import { readFronts } from '../../src/tools/doctor/fronts.ts';
import type { ReadFront } from '../../src/tools/doctor/fronts.ts';
import type { Line } from '../../src/tools/doctor/observed.ts';
import { meshBackend, route } from '../support/declared.ts';
import { BREAKS } from '../support/tools/breaks.ts';
import { editConfig, OTHER_EXTENSION } from '../support/tools/edits.ts';
import {
  condition,
  find,
  healthyInstallation,
  observedIn,
  set,
  TAILNET_CONDITIONS,
} from '../support/tools/installation.ts';
import type { Installation, Json } from '../support/tools/installation.ts';

const lines = (installation: Installation) => diagnose(observedIn(installation));

/** Breaks an installation; returns what has failed. */
function broken(change: (installation: Installation) => void): readonly Line[] {
  const installation = healthyInstallation();
  change(installation);
  return lines(installation).filter(({ is }) => is === 'failed');
}

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'mesh-extension-server', namespace: 'mesh-system' },
  spec: { clusterIPs: ['10.96.0.9'], ports: [{ port: 5005 }] },
};

const TWO_BACKENDS: Json = {
  ...route('HTTPRoute', 'default/two', {
    rules: [{ backendRefs: [meshBackend(), { name: 'shop', port: 80 }] }],
  }),
};

/** Reports about objects in which another check has found the cause. */
const CONSEQUENCES = ['a tailnet that is missing: routes'];

describe('doctor', () => {
  it('finds nothing wrong in an installation from the manifests, and checks all of it', () => {
    const found = lines(healthyInstallation());
    expect(found.filter(({ is }) => is !== 'ok')).toEqual([]);
    const checks = new Set(found.map(({ check }) => check));
    const covered = [...BREAKS.map(([, , check]) => check), 'network-policies'].filter(
      check => check !== 'references',
    );
    expect(covered.filter(check => !checks.has(check))).toEqual([]);
    expect([...checks].filter(check => !covered.includes(check))).toEqual([]);
  });

  it.each(BREAKS.map(each => [each[0], each] as const))('names %s', (_what, [, change, check, text, fix]) => {
    const found = broken(change).filter(line => line.check === check);
    expect(found.map(line => line.text).join('\n')).toContain(text);
    expect(found[0]?.fix ?? '').toContain(fix ?? '');
    for (const { reason = '' } of found) expect(Object.keys(REASONS)).toContain(reason);
  });

  it.each([
    [
      'failed',
      'with a rule that needs it',
      ', such as spec.rules[0] of HTTPRoute default/two',
      [TWO_BACKENDS],
    ],
    ['warning', 'without one', 'rules of several backends need it', []],
  ])('is %s for an Envoy Gateway that does not send routes, %s', (is, _, text, declared) => {
    const installation = healthyInstallation();
    editConfig(/^ *route:\n.*\n/m, '')(installation);
    installation.declared.push(...declared);
    const found = lines(installation).filter(each => each.check === 'hook' && each.is !== 'ok');
    expect(found).toMatchObject([
      {
        is,
        text: expect.stringMatching(
          /translation.route.includeAll of extensionManager is not true.*/,
        ) as string,
        fix: expect.stringContaining('helm upgrade eg') as string,
      },
    ]);
    expect(found[0]?.text).toContain(text);
  });

  it('warns of a pool whose mesh pods are ready and reach no relay', () => {
    const installation = healthyInstallation();
    const tailnet = find(installation.declared, 'example');
    const ready = TAILNET_CONDITIONS.map(type =>
      condition(type, 'True', type === 'PoolReady' ? 'RelayUnreachable' : type),
    );
    set(tailnet, 'status.conditions', ready);
    expect(lines(installation).filter(({ is }) => is !== 'ok')).toMatchObject([
      { check: 'pool', is: 'warning', reason: 'RelayUnreachable', about: { name: 'example' } },
    ]);
  });

  it('names nothing else, but what follows from it', () => {
    const others = BREAKS.flatMap(([what, change, check]) =>
      broken(change)
        .filter(line => line.check !== check)
        .map(line => `${what}: ${line.check}`),
    );
    expect(others).toEqual(CONSEQUENCES);
  });

  it.each<readonly [what: string, change: (installation: Installation) => void]>([
    [
      'several extensions of Envoy Gateway',
      editConfig('extensionManager:', 'extensionManagers:\n- name: other\n- name: mesh'),
    ],
    [
      'another extension of Envoy Gateway that is ready',
      all => {
        const [conditions, addresses] = [{ ready: true }, ['10.244.0.9']];
        all.declared.push({
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSlice',
          metadata: { namespace: 'ai', name: 'a', labels: { 'kubernetes.io/service-name': 'controller' } },
          addressType: 'IPv4',
          endpoints: [{ addresses, conditions }],
        });
        editConfig('extensionManager:', `extensionManagers:\n- ${OTHER_EXTENSION}\n- name: mesh`)(all);
      },
    ],
    [
      'a short name of the extension server',
      editConfig('.mesh-system.svc.cluster.local', '.mesh-system.svc'),
    ],
    ['a larger message limit', editConfig('maxMessageSize: 100M', 'maxMessageSize: 1Gi')],
    [
      'the address of the Service of the extension server',
      all => {
        all.declared.push(SERVICE);
        editConfig(/fqdn:\n *hostname: .*\n/, 'ip:\n      address: 10.96.0.9\n')(all);
      },
    ],
    [
      'policies that deny all, beside those of the manifests',
      all =>
        all.policies.push({
          metadata: { name: 'deny-all', namespace: 'mesh-system' },
          spec: { podSelector: {}, policyTypes: ['Ingress'] },
        }),
    ],
    [
      'a policy with ranges of addresses and ports, and names of ports',
      all => {
        const [policy] = all.policies.splice(1, 1);
        const from = [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.9.0.0/16'] } }];
        set(policy ?? {}, 'spec.ingress', [{ from, ports: [{ port: 5000, endPort: 5010 }] }]);
        all.policies.push(policy ?? {});
      },
    ],
    [
      'a label of the configuration that changed later',
      all => {
        const entry = { time: '2026-11-26T11:30:00Z', fieldsV1: { 'f:metadata': {} } };
        const config = find(all.envoyGatewayConfig, 'envoy-gateway-config');
        const metadata = config['metadata'] as { managedFields: object[] };
        metadata.managedFields.push(entry);
      },
    ],
    ['a quota that refuses nothing', all => void all.quotas.push({ metadata: { name: 'much' } })],
    [
      'a pod that is deleted',
      all => {
        const pod = find(all.pods, 'meshd-example-0');
        all.pods.push({
          ...structuredClone(pod),
          metadata: { name: 'old', namespace: 'mesh-system', deletionTimestamp: 'now' },
        });
      },
    ],
    [
      'a MeshEndpoints that is paused',
      all =>
        set(find(all.declared, 'web', 'MeshEndpoints'), 'status.conditions', [
          condition('Ready', 'False', 'Paused'),
        ]),
    ],
    [
      'proxies that others run, without a control API',
      all => {
        const tailnet = find(all.declared, 'example');
        set(tailnet, 'spec.pool', { mode: 'External', addresses: ['10.0.0.1:1055'] });
        set(tailnet, 'status.conditions', [
          condition('Ready', 'True', 'TailnetReady'),
          condition('Authenticated', 'False', 'ControlURLMissing'),
          condition('PoolReady', 'True', 'PoolReady'),
        ]);
      },
    ],
  ])('finds nothing wrong with %s', (_what, change) => {
    const installation = healthyInstallation();
    change(installation);
    expect(lines(installation).filter(({ is }) => is !== 'ok')).toEqual([]);
  });

  it.each([
    ['kubernetes', ['kubernetes']],
    ['definitions', ['crds', 'gateway-api']],
    ['access', ['rbac-operator', 'rbac-extension-server', 'rbac-envoy-gateway']],
    ['deployments', ['operator', 'extension-server', 'message-limit']],
    ['pods', ['images', 'pods', 'port-5005', 'port-1055', 'port-9002', 'port-53']],
    ['quotas', ['quotas']],
    ['lease', ['leader', 'clocks']],
    ['dnsPods', ['dns', 'port-53']],
    ['policies', ['port-5005', 'port-1055', 'port-9002', 'port-53']],
    ['envoys', ['images', 'pods', 'port-5005', 'port-1055', 'port-53']],
    ['envoyGateways', ['envoy-gateway']],
    ['envoyGatewayConfig', ['hook', 'message-limit', 'restarted']],
    ['trust', ['cas']],
  ] as const)('reports what depends on unread %s as not checked, with the refusal', (name, checks) => {
    const found = diagnose(observedIn(healthyInstallation(), { [name]: '403 not for you' }));
    const others = found.filter(({ is }) => is !== 'ok');
    expect(others.map(({ check }) => check)).toEqual(checks);
    expect(others.every(({ is }) => is === 'not checked')).toBe(true);
    if (name !== 'deployments')
      expect(others.every(({ text }) => text.includes('403 not for you'))).toBe(true);
  });

  it('waits for the status of a Gateway that Envoy Gateway has yet to translate', () => {
    const installation = healthyInstallation();
    set(find(installation.declared, 'public', 'Gateway'), 'status', {});
    expect(lines(installation).filter(({ is }) => is !== 'ok')).toEqual([
      {
        ...{ check: 'listeners', is: 'not checked', isPending: true },
        text: 'Gateway default/public: Envoy Gateway has not written its status yet',
      },
    ]);
  });

  it('trusts no status while no operator leads', () => {
    const installation = healthyInstallation();
    installation.lease = [];
    const found = lines(installation).filter(({ is }) => is !== 'ok');
    expect(found.map(({ check, is }) => `${check} ${is}`)).toEqual([
      'leader failed',
      'clocks not checked',
      'tailnet not checked',
      'endpoints not checked',
    ]);
  });

  it.each([
    [
      'NotEnforced',
      'warning',
      'run a network plugin that enforces NetworkPolicies, such as Calico or Cilium',
    ],
    ['NotInstalled', 'warning', 'set networkPolicies.enabled: true'],
    ['NoMeshPod', 'not checked', ''],
  ] as const)('warns of NetworkPolicies without fault, with the reason %s: %s', (reason, is, fix) => {
    const installation = healthyInstallation();
    const status = is === 'warning' ? 'False' : 'Unknown';
    set(find(installation.declared, 'example'), 'status.conditions', [
      ...TAILNET_CONDITIONS.slice(0, -1).map(type => condition(type, 'True', type)),
      condition('NetworkPoliciesEnforced', status, reason, 'how it was found'),
    ]);
    const [found, ...others] = lines(installation).filter(line => line.is !== 'ok');
    expect(found).toMatchObject({ check: 'network-policies', is, text: `${reason}: how it was found` });
    expect(found?.fix ?? '').toContain(fix);
    expect(others).toEqual([]);
  });

  it('fails where the proxy of mesh pods refuses the node of an Envoy', () => {
    const installation = healthyInstallation();
    set(find(installation.declared, 'example'), 'status.conditions', [
      ...TAILNET_CONDITIONS.map(type => condition(type, 'True', type)),
      condition('FrontReady', 'False', 'NodeAddressRefused', 'add it to spec.pool.allowedCallers'),
    ]);
    expect(lines(installation).filter(({ is }) => is !== 'ok')).toEqual([
      {
        check: 'front',
        is: 'failed',
        reason: 'NodeAddressRefused',
        about: { kind: 'MeshTailnet', name: 'example' },
        text: 'MeshTailnet example: NodeAddressRefused: add it to spec.pool.allowedCallers',
      },
    ]);
  });

  it.each([
    ['before the CRDs existed', { created: '2026-11-26T10:30:00Z' }],
    ['before the API server served them', { served: '2026-11-26T10:30:00Z' }],
    ['in the second in which the API server began to serve them', { served: '2026-11-26T10:00:00Z' }],
  ])('fails where Envoy Gateway, which looks for CRDs at its start, has started %s', (_, times) => {
    const { created, served } = { created: undefined, served: undefined, ...times };
    const installation = healthyInstallation();
    const definition = find(installation.definitions, 'meshendpoints.mesh-gateway.dev');
    if (created !== undefined) set(definition, 'metadata.creationTimestamp', created);
    if (served !== undefined)
      set(definition, 'status.conditions', [
        { type: 'Established', status: 'True', lastTransitionTime: served },
      ]);
    expect(lines(installation).filter(({ is }) => is !== 'ok')).toEqual([
      {
        check: 'restarted',
        is: 'failed',
        reason: 'RestartNeeded',
        text: 'pod envoy-gateway-system/envoy-gateway-1 has started before CRD meshendpoints.mesh-gateway.dev was served, and sees no MeshEndpoints until it is restarted',
        fix: 'kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway',
      },
    ]);
  });

  it('warns of what the proxy of mesh pods has refused, and names the pods that it could not ask', () => {
    const one = { pod: 'meshd-example-0', tailnet: 'example' };
    const checked = (...fronts: readonly ReadFront[]) =>
      diagnose({ ...observedIn(healthyInstallation()), fronts }).filter(({ check }) => check === 'refusals');
    expect(checked()).toEqual([]);
    expect(checked({ ...one, refused: new Map(), callers: [] })).toMatchObject([{ is: 'ok' }]);
    const refused = new Map([
      ['caller', 2],
      ['destination', 3],
    ]);
    const unread = { ...one, pod: 'meshd-example-1', why: 'it does not respond' };
    expect(checked({ ...one, refused, callers: ['10.0.0.1'] }, unread)).toEqual([
      {
        check: 'refusals',
        is: 'warning',
        reason: 'ConnectionsRefused',
        text: 'the proxy of meshd-example-0 has refused 5 connections (caller 2, destination 3) since it started, lately of 10.0.0.1',
        fix: 'see the log of its container relay, which names callers and destinations',
      },
      { check: 'refusals', is: 'not checked', text: 'meshd-example-1: it does not respond' },
    ]);
  });

  it('waits only for a while for a mesh pod that the API server does not reach', async () => {
    const [pod] = healthyInstallation().pods.filter(({ metadata }) =>
      (metadata as Json)['name']?.toString().startsWith('meshd-'),
    );
    set(pod ?? {}, 'status.phase', 'Running');
    const send = ({ signal }: KubeRequest) =>
      new Promise((_, reject) =>
        signal?.addEventListener('abort', () => reject(new KubeError('Aborted', 'aborted'))),
      );
    expect(await readFronts({ send }, [pod ?? {}], 10)).toEqual([
      {
        ...{ pod: 'meshd-example-0', tailnet: 'example' },
        why: 'the API server does not reach it: NetworkPolicies may forbid it, and its log has what it has refused',
      },
    ]);
  });

  it('waits for the operator to find out whether NetworkPolicies are enforced', () => {
    const installation = healthyInstallation();
    const known = TAILNET_CONDITIONS.slice(0, -1).map(type => condition(type, 'True', type));
    set(find(installation.declared, 'example'), 'status.conditions', known);
    expect(lines(installation).filter(({ is }) => is !== 'ok')).toMatchObject([
      { check: 'network-policies', is: 'not checked', isPending: true },
    ]);
  });

  it('shows no value of a Secret, a variable or a configuration', () => {
    const planted = 'planted-7f3a9';
    const installation = healthyInstallation();
    const text = JSON.stringify(installation);
    for (const [name, items] of Object.entries(installation)) {
      if (name === 'roles' || name === 'declared') continue;
      for (const item of items) item['secret'] = planted;
    }
    const config = find(installation.envoyGatewayConfig, 'envoy-gateway-config');
    config['data'] = { 'envoy-gateway.yaml': `password: "${planted}\nextensionManager: {service: {}}` };
    for (const pod of [...installation.pods, ...installation.envoyGatewayPods]) {
      const variable = { name: 'TOKEN', value: planted };
      pod['spec'] = { containers: [{ name: 'main', env: [variable], args: [planted] }] };
      const terminated = { reason: 'Error', message: planted };
      pod['status'] = {
        containerStatuses: [
          { name: 'main', restartCount: 9, lastState: { terminated }, state: { terminated } },
        ],
      };
    }
    const found = lines(installation);
    expect(text).not.toContain(planted);
    expect(found.filter(({ is }) => is === 'failed').length).toBeGreaterThan(3);
    expect(JSON.stringify(found)).not.toContain(planted);
  });
});
