import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { MESH_POD, RELAY } from '../../../../src/api/names.ts';
import { validate } from '../../../../src/api/validation/validate.ts';
import { POOL_ANNOTATIONS, poolObjects } from '../../../../src/controllers/mesh-tailnet/pool/objects.ts';
import type { PoolOptions } from '../../../../src/controllers/mesh-tailnet/pool/objects.ts';
import { named } from '../../../support/declared.ts';
import { podVariables } from '../../../support/controllers/mesh-tailnet/pod-variables.ts';
import { meshTailnet } from '../../../support/objects.ts';
import { modelOf } from '../../../support/synth/models.ts';
import { at, listAt, podOf, textsAt } from '../../../support/synth/parts.ts';
import { containerPolicies, podPolicies } from '../../../support/synth/pod-policies.ts';
import { installationOf } from '../../../support/synth/synthesized.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../../../support/traffic/certificates.ts';

type Fields = Readonly<Record<string, unknown>>;
type Choices = Partial<Omit<PoolOptions, 'tailnet'>>;

const LIMITS = { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '500m', memory: '256Mi' } };

function optionsOf(spec: Fields = {}, choices: Choices = {}): PoolOptions {
  const verdict = validate('MeshTailnet', named(meshTailnet(spec), 'home', { uid: 'uid-1' }));
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  return {
    tailnet: verdict.object,
    installation: '0a1b2c3d',
    namespace: 'mesh-system',
    defaults: { resources: LIMITS },
    controlURL: 'https://headscale.example.com',
    ca: undefined,
    replicas: 2,
    ordinals: 3,
    relayImage: undefined,
    ...choices,
  };
}

function objectsOf(spec: Fields = {}, choices: Choices = {}): readonly KubeObject[] {
  const { supporting, statefulSet } = poolObjects(optionsOf(spec, choices));
  return [...supporting, statefulSet].map(object => structuredClone(object) as unknown as KubeObject);
}

function statefulSetOf(spec: Fields = {}, choices: Choices = {}): KubeObject {
  const found = objectsOf(spec, choices).find(({ kind }) => kind === 'StatefulSet');
  if (!found) throw new Error('there is no StatefulSet');
  return found;
}

function containerOf(spec: Fields = {}, choices: Choices = {}): unknown {
  return at(podOf(statefulSetOf(spec, choices)), 'containers', 0);
}

function variablesOf(spec: Fields = {}, choices: Choices = {}): Readonly<Record<string, string>> {
  const variables = listAt(containerOf(spec, choices), 'env') as readonly { name: string; value: string }[];
  return Object.fromEntries(variables.map(({ name, value }) => [name, value]));
}

const RELAY_IMAGE = 'mesh-gateway:1.2.3';

const LISTENING = ['TS_OUTBOUND_HTTP_PROXY_LISTEN', 'TS_SOCKS5_SERVER', 'TS_LOCAL_ADDR_PORT'];

const FULL = {
  controlCA: { ca: CERTIFICATE },
  proxyURL: 'http://proxy.example.com:3128',
  pool: {
    image: 'registry.example.com/meshd:1.0',
    resources: LIMITS,
    nodeSelector: { 'example.com/egress': 'true' },
    tolerations: [{ key: 'egress', operator: 'Exists' }],
    priorityClassName: 'important',
    extraEnv: [{ name: 'TS_DEBUG_MTU', value: '1200' }],
  },
};

const others = /liveness and a readiness|restarted because of something outside|no variable holds a secret/;
const commonPolicies = [...podPolicies, ...containerPolicies].filter(
  ({ sentence }) => !others.test(sentence),
);

describe.each([
  ['of defaults', {}, {}],
  ['with every field', FULL, { ca: CERTIFICATE }],
  ['without members', {}, { replicas: 0, members: 0 }],
])('a pool %s', (_, spec, choices) => {
  const objects = objectsOf(spec, choices);

  it.each(objects.map(object => [`${object.kind} ${object.metadata.name ?? ''}`, object] as const))(
    'has a valid %s that is deleted together with the MeshTailnet',
    (_name, object) => {
      expect(() => {
        modelOf(object).validate();
      }).not.toThrow();
      expect(object.metadata).toMatchObject({
        ownerReferences: [{ kind: 'MeshTailnet', name: 'home', uid: 'uid-1', controller: true }],
        labels: {
          'app.kubernetes.io/name': 'mesh-endpoint',
          'app.kubernetes.io/managed-by': 'mesh-gateway',
          'mesh-gateway.dev/tailnet': 'home',
        },
      });
    },
  );

  it.each(commonPolicies)('is as every other pod: $sentence', ({ violations: offenders }) => {
    expect(offenders(objects)).toEqual([]);
  });
});

describe('the objects of a pool', () => {
  it('have the names that others rely on', () => {
    const names = objectsOf({}, { ca: CERTIFICATE }).map(
      ({ kind, metadata }) => `${kind} ${metadata.name ?? ''}`,
    );
    expect(names).toEqual([
      'ServiceAccount meshd-home',
      'Role meshd-home',
      'RoleBinding meshd-home',
      'Service meshd-home',
      'Service meshd-home-pods',
      'PodDisruptionBudget meshd-home',
      'ConfigMap meshd-home',
      'StatefulSet meshd-home',
    ]);
  });

  it('allow the pods to use the Secrets of all ordinals, and no other', () => {
    const role = (ordinals: number) =>
      objectsOf({}, { ordinals }).find(({ kind }) => kind === 'Role')?.['rules'];
    const secrets = ['meshd-home-0', 'meshd-home-1', 'meshd-home-2'];
    expect(role(3)).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: secrets, verbs: ['get', 'patch', 'update'] },
    ]);
    expect(role(0)).toEqual([]);
  });

  it('give the StatefulSet as many replicas as requested, and record the number of ordinals', () => {
    const { metadata, spec } = statefulSetOf({}, { replicas: 1, ordinals: 3 });
    expect(metadata.annotations).toMatchObject({ 'mesh-gateway.dev/members': '3' });
    expect(spec).toMatchObject({ replicas: 1, serviceName: 'meshd-home-pods' });
  });

  const hash = (spec: Fields, choices: Choices = {}) =>
    statefulSetOf(spec, choices).metadata.annotations?.[POOL_ANNOTATIONS.specHash];

  it('have the same hash while nothing changes', () => {
    expect(hash(FULL)).toMatch(/^[0-9a-f]{16}$/);
    expect(hash(FULL)).toBe(hash(structuredClone(FULL)));
  });

  it.each([
    ['replicas', {}, { replicas: 1 }],
    ['ordinals', {}, { ordinals: 4 }],
    ['the CA', {}, { ca: CERTIFICATE }],
    ['the image', { pool: { image: 'registry.example.com/meshd:2.0' } }, {}],
    ['the login server', { loginServer: 'https://login.example.com' }, {}],
  ])('have another hash when %s changes', (_, spec, choices) => {
    expect(hash(spec, choices)).not.toBe(hash({}));
  });

  it('have the image that an installation configures, where nothing else names one', () => {
    expect(at(containerOf(), 'image')).toBe(installationOf({}).meshPods.image);
  });
});

describe('the container relay', () => {
  const objects = objectsOf({}, { relayImage: RELAY_IMAGE });
  const statefulSet = statefulSetOf({}, { relayImage: RELAY_IMAGE });
  const [, relay, ...others] = listAt(podOf(statefulSet), 'containers');
  const find = (kind: string, name: string) =>
    objects.find(object => object.kind === kind && object.metadata.name === name);

  it.each(objects.map(object => [`${object.kind} ${object.metadata.name ?? ''}`, object] as const))(
    'is part of a valid %s',
    (_name, object) => {
      expect(() => {
        modelOf(object).validate();
      }).not.toThrow();
    },
  );

  // With a limit of its CPU it would lose datagrams whenever it is throttled.
  const suitable = commonPolicies.filter(({ sentence }) => !/requests and limits of CPU/.test(sentence));
  it.each(suitable)('is as every other container: $sentence', ({ violations }) => {
    expect(violations(objects)).toEqual([]);
  });

  it('is in no pod, and changes no object, where no image is set', () => {
    const texts = JSON.stringify(objectsOf());
    expect(listAt(podOf(statefulSetOf()), 'containers')).toHaveLength(1);
    expect(texts).not.toContain('relay');
  });

  it('is the second one, of the image that is set, with the name of its ConfigMap and the addresses of its pod', () => {
    expect(others).toEqual([]);
    expect(relay).toMatchObject({ name: RELAY.container, image: RELAY_IMAGE, args: ['relay'] });
    expect(listAt(relay, 'env')).toEqual([
      { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      { name: 'POD_IPS', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } },
      { name: 'RELAY_CONFIG_MAP', value: 'mesh-relay-home' },
      { name: 'MESHD_SOCKET', value: '/var/run/tailscale/tailscaled.sock' },
      { name: 'KEPT_FILE', value: '/var/run/tailscale/relay.json' },
    ]);
  });

  it('has the port of the proxy, which meshd has where there is no relay', () => {
    const [meshd] = listAt(podOf(statefulSet), 'containers');
    const proxy = { name: 'proxy', containerPort: 1055, protocol: 'TCP' };
    const metrics = { name: 'metrics', containerPort: 9002, protocol: 'TCP' };
    expect(listAt(relay, 'ports')).toEqual([
      proxy,
      { name: 'relay-http', containerPort: 9003, protocol: 'TCP' },
    ]);
    expect(listAt(meshd, 'ports')).toEqual([metrics]);
    expect(listAt(containerOf(), 'ports')).toEqual([proxy, metrics]);
  });

  it('keeps the data of its ConfigMap in the folder that it shares with meshd, which outlives the container', () => {
    expect(RELAY.keptFile.startsWith('/var/run/tailscale/')).toBe(true);
    expect(listAt(podOf(statefulSet), 'volumes')).toContainEqual({ name: 'run', emptyDir: {} });
  });

  it('shares the folder with the socket of tailscaled, which containerboot leaves to it to advertise services', () => {
    const [meshd] = listAt(podOf(statefulSet), 'containers');
    const mount = { name: 'run', mountPath: '/var/run/tailscale' };
    expect(listAt(relay, 'volumeMounts')).toEqual([mount]);
    expect(listAt(meshd, 'volumeMounts')).toContainEqual(mount);
    expect(listAt(meshd, 'env')).toEqual(
      expect.arrayContaining([
        { name: 'TS_SOCKET', value: '/var/run/tailscale/tailscaled.sock' },
        { name: 'TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT', value: 'false' },
      ]),
    );
    expect(JSON.stringify(podOf(statefulSetOf()))).not.toMatch(/TS_SOCKET|AUTO_ADVERTISEMENT/);
  });

  it('is ready by its own probe, is not restarted by one, and serves for 5 s after it begins to stop', () => {
    expect(relay).not.toHaveProperty('livenessProbe');
    expect(relay).toMatchObject({
      readinessProbe: { httpGet: { path: '/readyz', port: 'relay-http' }, periodSeconds: 1 },
      lifecycle: { preStop: { sleep: { seconds: 5 } } },
    });
  });

  it('may watch the ConfigMap with its targets by name, and no other', () => {
    expect(listAt(find('Role', 'meshd-home'), 'rules')).toContainEqual({
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: ['mesh-relay-home'],
      verbs: ['list', 'watch'],
    });
  });

  it('has a headless Service that selects the ready pods with it', () => {
    const labels = textsAt(statefulSet, 'spec', 'template', 'metadata', 'labels');
    const service = find('Service', 'mesh-relay-home');
    const selector = textsAt(service, 'spec', 'selector');
    expect(selector).toEqual({
      'app.kubernetes.io/name': 'mesh-endpoint',
      'mesh-gateway.dev/tailnet': 'home',
      'mesh-gateway.dev/relay': 'true',
    });
    expect(labels).toMatchObject(selector);
    expect(at(service, 'spec', 'clusterIP')).toBe('None');
    expect(at(service, 'spec', 'publishNotReadyAddresses')).toBeUndefined();
    expect(textsAt(statefulSetOf(), 'spec', 'template', 'metadata', 'labels')).not.toHaveProperty(
      RELAY.label,
    );
  });

  it('has the proxy on both families of a pod, so that its Service has an address of each', () => {
    const policyOf = (service: unknown) => at(service, 'spec', 'ipFamilyPolicy');
    expect(policyOf(find('Service', 'meshd-home'))).toBe('PreferDualStack');
    const without = objectsOf().find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === 'meshd-home',
    );
    expect(policyOf(without)).toBeUndefined();
  });

  it('is not part of the selector of the StatefulSet, which cannot change', () => {
    expect(textsAt(statefulSet, 'spec', 'selector', 'matchLabels')).toEqual(
      textsAt(statefulSetOf(), 'spec', 'selector', 'matchLabels'),
    );
  });
});

it('Secrets with which nodes pull images are those of the ServiceAccount, and change no pod', () => {
  const choices = { defaults: { resources: LIMITS, imagePullSecrets: ['registry'] } };
  const account = objectsOf({}, choices).find(({ kind }) => kind === 'ServiceAccount');
  expect(account?.['imagePullSecrets']).toEqual([{ name: 'registry' }]);
  expect(podOf(statefulSetOf({}, choices))).toEqual(podOf(statefulSetOf()));
});

describe('a mesh pod listens on its own address, to which meshd forwards nothing from the tailnet', () => {
  it.each([
    ['IPv4', ['10.0.0.7'], '[10.0.0.7]:1055', '10.0.0.7:9002'],
    ['IPv6', ['fd00::7'], '[fd00::7]:1055', 'fd00::7:9002'],
    ['IPv4 first, and IPv6', ['10.0.0.7', 'fd00::7'], '[10.0.0.7]:1055', '10.0.0.7:9002'],
    ['IPv6 first, and IPv4', ['fd00::7', '10.0.0.7'], '[fd00::7]:1055', 'fd00::7:9002'],
  ])('where it has %s', (_, podIPs, proxy, metrics) => {
    const variables = podVariables(containerOf(), podIPs);
    expect(variables.get('TS_OUTBOUND_HTTP_PROXY_LISTEN')).toBe(proxy);
    expect(variables.get('TS_SOCKS5_SERVER')).toBe(proxy);
    // With POD_IPS, containerboot adds the brackets of an IPv6 address; it refuses those of an IPv4 address.
    expect(variables.get('TS_LOCAL_ADDR_PORT')).toBe(metrics);
    expect(variables.get('POD_IPS')).toBe(podIPs.join(','));
  });

  it.each([['10.0.0.7'], ['fd00::7']])(
    'with a front: no proxy but the one that other pods of %s do not reach',
    ip => {
      const variables = podVariables(containerOf({}, { relayImage: RELAY_IMAGE }), [ip]);
      expect(variables.get('TS_OUTBOUND_HTTP_PROXY_LISTEN') ?? '').toBe('');
      expect(variables.get('TS_SOCKS5_SERVER')).toBe('127.0.0.2:1055');
      expect(variables.get('TS_LOCAL_ADDR_PORT')).toBe(`${ip}:9002`);
    },
  );

  it('with a front, whatever the variables of the defaults are', () => {
    const everywhere = LISTENING.map(name => ({ name, value: '0.0.0.0:1055' }));
    const choices = { defaults: { extraEnv: everywhere }, relayImage: RELAY_IMAGE };
    const variables = podVariables(containerOf({}, choices), ['10.0.0.7']);
    expect(LISTENING.map(name => variables.get(name) ?? '')).toEqual(['', '127.0.0.2:1055', '10.0.0.7:9002']);
  });

  it('whatever the variables of the defaults are', () => {
    const everywhere = ['POD_IP', ...LISTENING].map(name => ({ name, value: '0.0.0.0:1055' }));
    const choices = { defaults: { extraEnv: everywhere } };
    const variables = podVariables(containerOf({}, choices), ['10.0.0.7']);
    expect(['POD_IP', ...LISTENING].map(name => variables.get(name))).toEqual([
      '10.0.0.7',
      '[10.0.0.7]:1055',
      '[10.0.0.7]:1055',
      '10.0.0.7:9002',
    ]);
  });

  it('by no variable on loopback, or on all addresses', () => {
    for (const container of listAt(podOf(statefulSetOf({}, { relayImage: RELAY_IMAGE })), 'containers')) {
      const values = [...podVariables(container, ['10.0.0.7']).values()];
      expect(values.filter(value => /(^|\D)(127\.0\.0\.1|0\.0\.0\.0)|::|localhost|^:\d/.test(value))).toEqual(
        [],
      );
    }
  });

  it('and its probes and Services use that address', () => {
    const objects = objectsOf({}, { relayImage: RELAY_IMAGE });
    const texts = JSON.stringify(objects);
    // A probe without a host connects to status.podIP; a Service without ipFamilies has that of the cluster first.
    expect(texts).toContain('"httpGet":{"path":"/healthz","port":"metrics"}');
    expect(texts).not.toMatch(/"host"|"hostNetwork"|"ipFamilies"/);
  });
});

describe('a mesh pod', () => {
  it('has the label by which network policies select it', () => {
    const labels = textsAt(statefulSetOf(), 'spec', 'template', 'metadata', 'labels');
    expect(labels).toMatchObject({ ...MESH_POD.labels, 'mesh-gateway.dev/tailnet': 'home' });
    expect(labels).not.toHaveProperty('app.kubernetes.io/version');
  });

  it('is not restarted by a probe, and serves for 5 s after it begins to stop', () => {
    const container = containerOf();
    expect(container).not.toHaveProperty('livenessProbe');
    expect(container).not.toHaveProperty('startupProbe');
    expect(container).toMatchObject({
      readinessProbe: { httpGet: { path: '/healthz', port: 'metrics' }, periodSeconds: 1 },
      lifecycle: { preStop: { sleep: { seconds: 5 } } },
    });
  });

  it('keeps its identity in the Secret of its name, and joins with a hostname of this installation', () => {
    expect(variablesOf()).toMatchObject({
      TS_KUBE_SECRET: '$(POD_NAME)',
      TS_HOSTNAME: '$(POD_NAME)-0a1b2c3d',
      TS_AUTH_ONCE: 'true',
    });
    expect(listAt(containerOf(), 'env')[0]).toMatchObject({
      name: 'POD_NAME',
      valueFrom: { fieldRef: { fieldPath: 'metadata.name' } },
    });
  });

  const VENDOR = 'https://api.tailscale.com';
  it.each([
    ['the control API', {}, 'https://headscale.example.com', '--login-server=https://headscale.example.com'],
    ['spec.loginServer', { loginServer: 'https://a.example' }, VENDOR, '--login-server=https://a.example'],
    ["the vendor's server, which is not its API", {}, VENDOR, undefined],
  ])('joins at %s', (_, spec, controlURL, wanted) => {
    expect(variablesOf(spec, { controlURL })['TS_EXTRA_ARGS']).toBe(wanted);
  });

  it("sends no logs to the vendor, except from the vendor's tailnets", () => {
    expect(variablesOf()['TS_NO_LOGS_NO_SUPPORT']).toBe('true');
    expect(variablesOf({}, { controlURL: VENDOR })).not.toHaveProperty('TS_NO_LOGS_NO_SUPPORT');
  });

  it.each([
    ['of the MeshTailnet', { pool: { resources: { limits: { memory: '512Mi' } } } }, '429496729'],
    ['of the defaults', {}, '214748364'],
    ['of none', { pool: { resources: {} } }, undefined],
    [
      'but for the one in spec.pool.extraEnv',
      { pool: { extraEnv: [{ name: 'GOMEMLIMIT', value: '100MiB' }] } },
      '100MiB',
    ],
  ])('collects garbage before it reaches its memory limit, by the limit %s', (_, spec, wanted) => {
    const defaults = { resources: { limits: { memory: '256Mi' } } };
    expect(variablesOf(spec, { defaults })['GOMEMLIMIT']).toBe(wanted);
  });

  const HTTP = 'http://headscale.example.com';
  const OFF = [{ name: 'TS_DEBUG_USE_DERP_HTTP', value: 'false' }];
  it.each([
    ['over TLS where it joins over TLS', {}, 'https://headscale.example.com', undefined],
    ['without TLS where it joins without', {}, HTTP, 'true'],
    ['without TLS where spec.loginServer has none', { loginServer: HTTP }, VENDOR, 'true'],
    ['as spec.pool.extraEnv has it', { pool: { extraEnv: OFF } }, HTTP, 'false'],
  ])('uses relays %s', (_, spec, controlURL, wanted) => {
    expect(variablesOf(spec, { controlURL })['TS_DEBUG_USE_DERP_HTTP']).toBe(wanted);
  });

  it('uses the proxy for the control server, and none for the API server', () => {
    expect(variablesOf()).not.toHaveProperty('HTTPS_PROXY');
    expect(variablesOf({ proxyURL: 'http://proxy.example.com:3128' })).toMatchObject({
      HTTPS_PROXY: 'http://proxy.example.com:3128',
      HTTP_PROXY: 'http://proxy.example.com:3128',
      NO_PROXY: 'kubernetes.default.svc,$(KUBERNETES_SERVICE_HOST)',
    });
  });

  it('trusts the CA beside the roots of its system, and is replaced when the CA changes', () => {
    const template = (ca: string | undefined) => at(statefulSetOf({}, { ca }), 'spec', 'template');
    const mount = { name: 'ca', mountPath: '/etc/mesh-gateway/ca', readOnly: true };
    expect(variablesOf({}, { ca: CERTIFICATE })['SSL_CERT_DIR']).toBe(
      '/etc/ssl/certs:/etc/pki/tls/certs:/etc/mesh-gateway/ca',
    );
    expect(listAt(containerOf({}, { ca: CERTIFICATE }), 'volumeMounts')).toContainEqual(mount);
    expect(template(CERTIFICATE)).not.toEqual(template(OTHER_CERTIFICATE));
    expect(variablesOf()).not.toHaveProperty('SSL_CERT_DIR');
  });

  it.each([
    ['image', { image: 'a.example/meshd:1' }, { image: 'b.example/meshd:2' }],
    ['priorityClassName', { priorityClassName: 'low' }, { priorityClassName: 'high' }],
    ['nodeSelector', { nodeSelector: { pool: 'a' } }, { nodeSelector: { pool: 'b' } }],
    ['tolerations', { tolerations: [{ key: 'a' }] }, { tolerations: [{ key: 'b' }] }],
  ])('takes %s from the MeshTailnet, or else from the defaults of the operator', (field, ours, theirs) => {
    const found = (pool: Fields) => {
      const statefulSet = statefulSetOf({ pool }, { defaults: ours });
      return at(podOf(statefulSet), field) ?? at(podOf(statefulSet), 'containers', 0, field);
    };
    expect(found({})).toEqual(at(ours, field));
    expect(found(theirs)).toEqual(at(theirs, field));
  });

  it('has the variables of the MeshTailnet and of the defaults, but none that replaces its own', () => {
    const variables = variablesOf(
      {
        pool: {
          extraEnv: [
            { name: 'TS_DEBUG_MTU', value: '1200' },
            { name: 'TS_BOOT_TIMEOUT', value: '10m' },
          ],
        },
      },
      {
        defaults: {
          extraEnv: [
            { name: 'TS_DEBUG_MTU', value: '1280' },
            { name: 'TZ', value: 'Europe/Berlin' },
            { name: 'TS_HOSTNAME', value: 'mine' },
            { name: 'POD_NAME', value: 'mine' },
          ],
        },
      },
    );
    expect(variables).toMatchObject({
      TS_DEBUG_MTU: '1200',
      TZ: 'Europe/Berlin',
      TS_BOOT_TIMEOUT: '10m',
      TS_HOSTNAME: '$(POD_NAME)-0a1b2c3d',
      POD_NAME: undefined,
    });
  });
});
