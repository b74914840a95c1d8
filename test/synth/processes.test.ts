import { describe, expect, it } from 'vitest';
import { operatorAccess } from '../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../src/traffic/access.ts';
import {
  controllerSettings,
  dialledAddress,
  envoySettings,
  extensionSettings,
  manifestSettings,
  telemetrySettings,
} from '../../src/process/declared-settings.ts';
import { addressSettings } from '../../src/process/addresses.ts';
import { meshPodSettings } from '../../src/process/mesh-pods.ts';
import { at, containersOf, listAt, textsAt } from '../support/synth/parts.ts';
import { everyKnob, installationOf, objectOf, objectsIn, synthesized } from '../support/synth/synthesized.ts';
import type { Written } from '../support/synth/synthesized.ts';

const shared = {
  ...telemetrySettings,
  ...addressSettings,
  dataPath: extensionSettings.dataPath,
  dialledAddress,
};

type Setting = { readonly name: string; readonly parse: (setting: string, text: string) => unknown };

/** The settings of each process, as it declares them itself. */
const PROCESSES: readonly {
  readonly name: string;
  readonly command: string;
  readonly settings: Readonly<Record<string, Setting>>;
}[] = [
  {
    name: 'mesh-operator',
    command: 'operator',
    settings: { ...shared, ...controllerSettings, ...envoySettings, ...manifestSettings, ...meshPodSettings },
  },
  {
    name: 'mesh-extension-server',
    command: 'extension-server',
    settings: { ...shared, ...extensionSettings },
  },
];

const containerOf = (name: string, written: Written = {}) =>
  containersOf(objectOf(objectsIn(synthesized(written)), 'Deployment', name))[0];

function variablesOf(container: unknown): ReadonlyMap<string, string> {
  const given = listAt(container, 'env').filter(one => at(one, 'value') !== undefined);
  // As Kubernetes passes it on if no other variable is named.
  const expanded = (value: unknown) => String(value).replaceAll('$$', '$');
  for (const one of given) expect(String(at(one, 'value'))).not.toMatch(/(^|[^$])(\$\$)*\$\(/);
  return new Map(given.map(one => [String(at(one, 'name')), expanded(at(one, 'value'))]));
}

describe.each(PROCESSES)('the container of $name', ({ name, command, settings }) => {
  it('runs its command', () => {
    expect(listAt(containerOf(name), 'args')).toEqual([command]);
  });

  it.each([{ written: {} }, { written: everyKnob }])(
    'gets environment variables that it accepts',
    ({ written }) => {
      const variables = variablesOf(containerOf(name, written));
      expect(variables.size).toBeGreaterThan(5);
      for (const [variable, value] of variables) {
        // The C library and Node read them.
        if (['MALLOC_MMAP_THRESHOLD_', 'NODE_OPTIONS', 'TZ'].includes(variable)) continue;
        const setting = Object.values(settings).find(one => one.name === variable);
        expect(setting, variable).toBeDefined();
        expect(() => setting?.parse(variable, value)).not.toThrow();
      }
    },
  );

  it('has the resources of its configuration', () => {
    const process = name === 'mesh-operator' ? 'operator' : 'extensionServer';
    const { resources } = installationOf({})[process];
    expect(at(containerOf(name), 'resources')).toEqual(resources);
    const more = { limits: { cpu: '3', memory: '3Gi' }, requests: { cpu: '2', memory: '2Gi' } };
    expect(at(containerOf(name, { [process]: { resources: more } }), 'resources')).toEqual(more);
  });

  it('gets its namespace and pod name', () => {
    const fields = listAt(containerOf(name), 'env').flatMap(one => {
      const field = at(one, 'valueFrom', 'fieldRef', 'fieldPath');
      return field === undefined ? [] : [[at(one, 'name'), field]];
    });
    expect(fields).toEqual([
      ['POD_NAMESPACE', 'metadata.namespace'],
      ['POD_NAME', 'metadata.name'],
    ]);
  });

  it('listens on the ports of its Service and probes', () => {
    const container = containerOf(name);
    const variables = variablesOf(container);
    const ports = new Map(
      listAt(container, 'ports').map(port => [at(port, 'name'), `:${String(at(port, 'containerPort'))}`]),
    );
    expect(ports.get('metrics')).toBe(variables.get('METRICS_ADDRESS'));
    expect(ports.get('health')).toBe(variables.get('HEALTH_ADDRESS'));
    expect(ports.get('grpc')).toBe(variables.get('GRPC_ADDRESS'));
  });
});

describe('the operator', () => {
  const valueOf = (variable: string) =>
    variablesOf(containerOf('mesh-operator', everyKnob)).get(variable) ?? '';
  const { controlURL, meshPods, relayPorts, imagePullSecrets, relayPortsPerNamespace } = meshPodSettings;
  const { maxVipServices } = meshPodSettings;

  it('understands of tailnets and mesh pods what was configured', () => {
    expect(controlURL.parse('CONTROL_API_URL', valueOf('CONTROL_API_URL'))).toBe(
      'https://control.example.com/base',
    );
    expect(relayPorts.parse('RELAY_PORTS', valueOf('RELAY_PORTS'))).toEqual({ first: 21_000, last: 28_999 });
    const share = valueOf('RELAY_PORTS_PER_NAMESPACE');
    expect(relayPortsPerNamespace.parse('RELAY_PORTS_PER_NAMESPACE', share)).toBe(500);
    const most = valueOf('MAX_VIP_SERVICES');
    expect(maxVipServices.parse('MAX_VIP_SERVICES', most)).toBe(400);
    const secrets = imagePullSecrets.parse('IMAGE_PULL_SECRETS', valueOf('IMAGE_PULL_SECRETS'));
    expect(secrets).toEqual(['registry']);
    // Relays follow the image of the operator's pod, wherever that is changed.
    expect(valueOf('RELAY_IMAGE')).toBe('');
    expect(meshPods.parse('MESH_PODS', valueOf('MESH_PODS'))).toEqual({
      image: 'registry.example.com/mesh/meshd:1.0',
      resources: { requests: { cpu: '60m', memory: '70Mi' }, limits: { cpu: '600m', memory: '300Mi' } },
      nodeSelector: { mesh: 'yes' },
      tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'mesh', effect: 'NoExecute' }],
      priorityClassName: 'mesh',
      extraEnv: [
        { name: 'TS_DEBUG_DERP', value: 'ä-$(POD_NAME)-$$' },
        { name: 'TS_DEBUG_MTU', value: '1280' },
      ],
    });
  });

  it('gets no control API if none is configured', () => {
    expect(variablesOf(containerOf('mesh-operator')).has('CONTROL_API_URL')).toBe(false);
  });
});

describe('the extension server', () => {
  const objects = objectsIn(synthesized({}));

  it('has the address that Envoy Gateway and both processes use', () => {
    const address = 'mesh-extension-server.mesh-system.svc.cluster.local:5005';
    for (const { name } of PROCESSES)
      expect(variablesOf(containerOf(name)).get('EXTENSION_SERVER_ADDRESS')).toBe(address);
    const values = synthesized({}).get('envoy-gateway/values.yaml') ?? '';
    expect(values).toContain('hostname: mesh-extension-server.mesh-system.svc.cluster.local');
    expect(values).toContain('port: 5005');
    const service = objectOf(objects, 'Service', 'mesh-extension-server');
    expect(listAt(service, 'spec', 'ports').map(port => at(port, 'port'))).toEqual([5005, 8080]);
  });

  it('has a gRPC readiness probe, and a liveness probe of its event loop', () => {
    const container = containerOf('mesh-extension-server');
    expect(at(container, 'readinessProbe', 'grpc')).toEqual({ port: 5005 });
    expect(at(container, 'livenessProbe', 'httpGet')).toEqual({ path: '/healthz', port: 'health' });
  });

  it('has 2 to 10 pods, at 70 percent of the CPU that they request', () => {
    const { spec } = objectOf(objects, 'HorizontalPodAutoscaler');
    expect(spec).toMatchObject({
      minReplicas: 2,
      maxReplicas: 10,
      metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 70 } } }],
    });
  });

  it('agrees with Envoy Gateway about the largest message', () => {
    const files = synthesized({ extensionServer: { maxMessageSize: '7M' } });
    expect(files.get('envoy-gateway/values.yaml')).toContain('maxMessageSize: 7M');
    expect(files.get('envoy-gateway/config-map.yaml')).toContain('maxMessageSize: 7M');
    expect(files.get('extension-server.yaml')).toContain('value: 7M');
  });
});

describe('RBAC', () => {
  const objects = objectsIn(synthesized({}));
  const rulesOf = (kind: string, name: string) => listAt(objectOf(objects, kind, name), 'rules');

  it('grants the processes what their code declares', () => {
    expect(rulesOf('ClusterRole', 'mesh-operator.mesh-system')).toEqual(operatorAccess.cluster);
    expect(rulesOf('Role', 'mesh-operator')).toEqual(operatorAccess.own);
    expect(rulesOf('ClusterRole', 'mesh-extension-server.mesh-system')).toEqual(
      extensionServerAccess.cluster,
    );
    expect(rulesOf('Role', 'mesh-extension-server')).toEqual(extensionServerAccess.own);
  });

  it.each([
    ['mesh-operator', operatorAccess, 'create'],
    ['mesh-extension-server', extensionServerAccess, 'get'],
  ])(
    'has what %s does not use in a role of its own, which a configuration leaves out',
    (name, access, verb) => {
      const unused = { apiGroups: ['mesh-gateway.dev'], resources: ['meshendpoints'], verbs: [verb] };
      expect(rulesOf('ClusterRole', `${name}-unused.mesh-system`)).toEqual([unused]);
      expect(access.cluster).not.toContainEqual(unused);
      const files = synthesized({ rbac: { unusedRights: false } });
      const role = objectOf(objectsIn(files), 'ClusterRole', `${name}.mesh-system`);
      expect(listAt(role, 'rules')).toEqual(access.cluster);
      expect(files.get('rbac.yaml')).not.toContain('-unused');
    },
  );

  it('allows Envoy Gateway to read the kinds that its configuration names, and to write the status of policies', () => {
    expect(rulesOf('ClusterRole', 'mesh-envoy-gateway.mesh-system')).toEqual([
      {
        apiGroups: ['mesh-gateway.dev'],
        resources: ['meshbindings', 'meshendpoints'],
        verbs: ['get', 'list', 'watch'],
      },
      { apiGroups: ['mesh-gateway.dev'], resources: ['meshbindings/status'], verbs: ['update'] },
    ]);
    const binding = objectOf(objects, 'ClusterRoleBinding', 'mesh-envoy-gateway.mesh-system');
    expect(binding['subjects']).toEqual([
      { kind: 'ServiceAccount', namespace: 'envoy-gateway-system', name: 'envoy-gateway' },
    ]);
  });

  it('allows no process to read Secrets, until the owner of a namespace binds it there', () => {
    const name = 'mesh-secret-reader.mesh-system';
    expect(rulesOf('ClusterRole', name)).toEqual([
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
    ]);
    expect(objects.filter(one => at(one, 'roleRef', 'name') === name)).toEqual([]);
  });

  it.each(['admin', 'edit', 'view'])(
    'to users with the role %s is what concerns MeshEndpoints, MeshGateways and MeshRoutePolicies alone',
    role => {
      const found = objectOf(objects, 'ClusterRole', `mesh-gateway-${role}.mesh-system`);
      const label = `rbac.authorization.k8s.io/aggregate-to-${role}`;
      const aggregated = Object.entries(textsAt(found, 'metadata', 'labels')).filter(([key]) =>
        key.includes('aggregate'),
      );
      expect(aggregated).toEqual([[label, 'true']]);
      const resources = listAt(found, 'rules').flatMap(rule => listAt(rule, 'resources'));
      expect(resources).toEqual([
        'meshendpoints',
        'meshgateways',
        'meshroutepolicies',
        'meshendpoints/status',
        'meshgateways/status',
        'meshroutepolicies/status',
      ]);
      const verbs = listAt(found, 'rules').flatMap(rule => listAt(rule, 'verbs'));
      expect(verbs.includes('create')).toBe(role !== 'view');
      expect(listAt(found, 'rules', 1, 'verbs')).toEqual(['get']);
    },
  );
});

describe('a network policy', () => {
  const peersOf = (written: Written, name: string, port: number) => {
    const policy = objectOf(objectsIn(synthesized(written)), 'NetworkPolicy', name);
    const rules = listAt(policy, 'spec', 'ingress').filter(rule => at(rule, 'ports', 0, 'port') === port);
    return rules.flatMap(rule => listAt(rule, 'from'));
  };
  const envoysIn = (namespace: string) => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    podSelector: {
      matchLabels: {
        'app.kubernetes.io/component': 'proxy',
        'app.kubernetes.io/managed-by': 'envoy-gateway',
      },
    },
  });

  it('allows Envoy Gateway and its Envoys to call the extension server, by namespace and label together', () => {
    const written = { envoyGateway: { namespace: 'eg', proxyNamespaces: ['eg', 'team'] } };
    expect(peersOf(written, 'mesh-extension-server', 5005)).toEqual([
      {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'eg' } },
        podSelector: { matchLabels: { 'control-plane': 'envoy-gateway' } },
      },
      envoysIn('eg'),
      envoysIn('team'),
    ]);
  });

  it.each([
    ['mesh-operator', 8080],
    ['mesh-extension-server', 8080],
    ['mesh-pods', 9002],
  ])('allows only monitoring to read the metrics of %s', (name, port) => {
    const written = { monitoring: { namespace: 'watchers' } };
    expect(peersOf(written, name, port)).toEqual([
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'watchers' } } },
    ]);
  });
});
