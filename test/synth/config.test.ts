import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../synth/config.ts';
import { everyKnob, installationOf } from '../support/synth/synthesized.ts';

const faultsOf = (text: string) => readConfiguration(text).faults;

describe('a configuration', () => {
  it.each([
    ['an empty text', ''],
    ['a comment', '# nothing yet\n'],
    ['an object without fields', '{}'],
    ['an empty document', '---\n'],
    ['JSON', '{"namespace": "mesh-system"}'],
    ['fields that are null', 'namespace:\nimage: ~\n'],
  ])('is the default where it is %s', (_, text) => {
    expect(readConfiguration(text)).toEqual({ installation: installationOf({}) });
  });

  it('has the documented defaults', () => {
    expect(installationOf({})).toMatchObject({
      namespace: 'mesh-system',
      image: { repository: 'mesh-gateway', pullPolicy: 'IfNotPresent' },
      operator: {
        replicas: 2,
        resources: { limits: { cpu: '1000m', memory: '1Gi' }, requests: { cpu: '200m', memory: '256Mi' } },
        maxConcurrentReconciles: 10,
        syncPeriod: '30s',
        healthCheckConcurrency: 256,
        maxVipServices: 1000,
        logLevel: 'info',
      },
      extensionServer: {
        autoscaling: { minReplicas: 2, maxReplicas: 10, targetCPUPercent: 70 },
        maxMessageSize: '100M',
        keepaliveTime: '30s',
      },
      envoyGateway: { namespace: 'envoy-gateway-system', serviceAccount: 'envoy-gateway' },
      networkPolicies: { enabled: true },
      rbac: { unusedRights: true },
    });
  });

  it('keeps the other defaults of an object of which one field is given', () => {
    const { operator } = installationOf({ operator: { resources: { limits: { memory: '512Mi' } } } });
    expect(operator.resources).toEqual({
      limits: { cpu: '1000m', memory: '512Mi' },
      requests: { cpu: '200m', memory: '256Mi' },
    });
  });

  it.each([
    [
      'a field that there is not',
      'namespaces: a',
      'namespaces: there is no such field; did you mean namespace?',
    ],
    [
      'such a field deep inside',
      'operator: {resources: {limits: {devices: "1"}}}',
      'operator.resources.limits.devices: there is no such field',
    ],
    [
      'a number where a text is meant',
      'operator: {resources: {limits: {cpu: 1}}}',
      'operator.resources.limits.cpu: 1 is not an amount of CPU, such as 500m, or 2 in quotes; write it in quotes: "1"',
    ],
    [
      'a text where a number is meant',
      'operator: {replicas: "3"}',
      'operator.replicas: "3" is not a whole number; write it without quotes: 3',
    ],
    ['too many', 'operator: {replicas: 11}', 'operator.replicas: 11 is too large: the most is 10'],
    ['no pods at all', 'operator: {replicas: 0}', 'operator.replicas: 0 is too small: the least is 1'],
    [
      'a namespace with capitals',
      'namespace: Mesh',
      `namespace: "Mesh" is not the name of a namespace (lower-case letters, digits and '-', at most 63 characters)`,
    ],
    [
      'a CIDR that is too long',
      'externalTargets: {allow: [10.1.0.0/33]}',
      'externalTargets.allow: 10.1.0.0/33 is not a host name, IP address or CIDR, such as 10.1.0.0/16',
    ],
    [
      'a refused host name',
      'refusedAddresses: [face.bad]',
      'refusedAddresses: face.bad is not an IP address or CIDR, such as 100.64.0.0/16',
    ],
    [
      'a refused CIDR that is too long',
      'refusedAddresses: [100.64.0.0/33]',
      'refusedAddresses: 100.64.0.0/33 is not an IP address or CIDR, such as 100.64.0.0/16',
    ],
    ['another word', 'dataPath: proxy', 'dataPath: "proxy" is not one of Proxy, Direct; write Proxy'],
    [
      'a tag inside of the repository',
      'image: {repository: "registry.example.com/mesh-gateway:1.0"}',
      'image.repository: "registry.example.com/mesh-gateway:1.0" is not the name of an image without tag or digest, such as registry.example.com/mesh-gateway',
    ],
    [
      'an empty part of the repository',
      'image: {repository: "a//b"}',
      'image.repository: "a//b" is not the name of an image without tag or digest, such as registry.example.com/mesh-gateway',
    ],
    [
      'a size that Kubernetes does not know',
      'extensionServer: {maxMessageSize: 500K}',
      'extensionServer.maxMessageSize: "500K" is not a size, such as 100M, 100Mi or a number of bytes',
    ],
    [
      'half a byte of memory',
      'operator: {resources: {requests: {memory: 256m}}}',
      'operator.resources.requests.memory: "256m" is not an amount of memory, such as 256Mi, or a number of bytes in quotes',
    ],
    [
      'an amount of memory for CPU',
      'operator: {resources: {limits: {cpu: 1Gi}}}',
      'operator.resources.limits.cpu: "1Gi" is not an amount of CPU, such as 500m, or 2 in quotes',
    ],
    [
      'units of a duration in an order that Prometheus does not know',
      'monitoring: {scrapeInterval: 30s1m}',
      'monitoring.scrapeInterval: "30s1m" is not a duration (numbers with units h, m, s and ms, each once and in this order), such as 30s or 1m30s',
    ],
    [
      'a label whose key begins with no name of DNS',
      'labels: {"a..b/team": c}',
      "labels: label keys must look like team or example.com/team: letters, digits, '-', '_' and '.', a name of DNS before the '/', and at most 63 characters after it",
    ],
    [
      'a label whose key begins with a name that is too long',
      `labels: {"${'a'.repeat(254)}/team": c}`,
      "labels: label keys must look like team or example.com/team: letters, digits, '-', '_' and '.', a name of DNS before the '/', and at most 63 characters after it",
    ],
    [
      'a toleration of a taint that there cannot be',
      'scheduling: {tolerations: [{key: "not valid!", operator: Exists}]}',
      "scheduling.tolerations[0].key: key must look like team or example.com/team: letters, digits, '-', '_' and '.', a name of DNS before the '/', and at most 63 characters after it",
    ],
    [
      'a toleration of a value that there cannot be',
      'scheduling: {tolerations: [{key: a, value: "not valid!"}]}',
      `scheduling.tolerations[0].value: "not valid!" is not a value of a taint (letters, digits, '-', '_' and '.', at most 63 characters)`,
    ],
    [
      'two keys of one label',
      'operator: {endpointMetricLabels: [a-b, a.b]}',
      'operator.endpointMetricLabels: a.b would be the label metadata_a_b of an earlier key too: remove one',
    ],
    [
      'a key that is no label',
      'operator: {endpointMetricLabels: ["a b"]}',
      'operator.endpointMetricLabels[0]: "a b" is not a key of metadata that can be a label, such as region',
    ],
    [
      'a namespace of Kubernetes itself',
      'namespace: kube-system',
      'namespace: kube-system is a namespace of Kubernetes itself; name one that mesh-gateway alone uses: it enforces Pod Security, and is deleted with the installation',
    ],
    [
      'the namespace of others',
      'namespace: monitoring',
      'namespace: monitoring is that of monitoring.namespace too; name one that mesh-gateway alone uses: it enforces Pod Security, and is deleted with the installation',
    ],
    [
      'fewer at most than at least',
      'extensionServer: {autoscaling: {minReplicas: 11}}',
      'extensionServer.autoscaling.minReplicas: minReplicas must not be more than maxReplicas',
    ],
    [
      'requests above the limit',
      'operator: {resources: {limits: {memory: 128Mi}}}',
      'operator.resources.requests.memory: 256Mi is more than the limit of 128Mi',
    ],
    [
      'requests above the limit in other units',
      'extensionServer: {resources: {requests: {cpu: "2"}}}',
      'extensionServer.resources.requests.cpu: 2 is more than the limit of 1000m',
    ],
    [
      'a toleration of nothing',
      "meshPods: {tolerations: [{key: ''}]}",
      'meshPods.tolerations[0].key: key is required where operator is Equal',
    ],
    [
      'a variable that decides what a mesh pod listens on',
      "meshPods: {extraEnv: {TS_SOCKS5_SERVER: ':1055'}}",
      'meshPods.extraEnv: names must be of GOGC, GOMAXPROCS, GOMEMLIMIT, TS_BOOT_TIMEOUT, TS_DEBUG_ALWAYS_USE_DERP, TS_DEBUG_DERP (and what begins with it), TS_DEBUG_DISCO, TS_DEBUG_ENABLE_PMTUD, TS_DEBUG_MTU, TS_DEBUG_NETCHECK, TS_DEBUG_PMTUD, TS_DEBUG_USE_DERP_HTTP, TS_DISABLE_PORTMAPPER, TS_DISABLE_UPNP, TS_NO_LOGS_NO_SUPPORT, TZ, at most 128 characters: others decide what a mesh pod runs, listens on or trusts',
    ],
    [
      'a variable that the operator has already',
      'operator: {extraEnv: {LOG_LEVEL: debug, TZ: UTC}}',
      'operator.extraEnv: LOG_LEVEL is set by mesh-gateway itself: remove it here, and set the field that it is for',
    ],
    [
      'the name of its pod as a variable',
      'extensionServer: {extraEnv: {POD_NAME: a}}',
      'extensionServer.extraEnv: POD_NAME is set by mesh-gateway itself: remove it here, and set the field that it is for',
    ],
    [
      'a variable that no shell could set',
      "operator: {extraEnv: {'a b': c}}",
      "operator.extraEnv: names must be letters, digits and '_', must not begin with a digit, and must have at most 128 characters",
    ],
    [
      'an affinity that Kubernetes does not know',
      'scheduling: {affinity: {nodeAffinity: {requiredDuringScheduling: {}}}}',
      'scheduling.affinity.nodeAffinity.requiredDuringScheduling: there is no such field',
    ],
    [
      'an affinity to pods of no place',
      'scheduling: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}',
      'scheduling.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: is required: give a text',
    ],
    [
      'variables of mesh pods that no process could be started with',
      `meshPods: {extraEnv: {TS_DEBUG_DERPA: ${'ä'.repeat(4096)}, ${'BCDE'.replaceAll(/./g, name => `TS_DEBUG_DERP${name}: ${'ä'.repeat(4096)}, `)}}}`,
      'meshPods.extraEnv: the fields of meshPods must fit into 100000 characters of JSON in total, and takes 123214',
    ],
    [
      'a duration without a unit',
      'operator: {syncPeriod: "30"}',
      'operator.syncPeriod: "30" is not a duration (numbers with units h, m, s and ms, each once and in this order), such as 30s or 1m30s',
    ],
    [
      'no time at all',
      'operator: {syncPeriod: 0s}',
      'operator.syncPeriod: "0s" is not a duration (numbers with units h, m, s and ms, each once and in this order), such as 30s or 1m30s',
    ],
    [
      'a label that is none',
      'labels: {"a b": c}',
      "labels: label keys must look like team or example.com/team: letters, digits, '-', '_' and '.', a name of DNS before the '/', and at most 63 characters after it",
    ],
    [
      'a toleration without a key',
      'scheduling: {tolerations: [{value: a}]}',
      'scheduling.tolerations[0].key: key is required where operator is Equal',
    ],
    [
      'a toleration with a value that counts for nothing',
      'scheduling: {tolerations: [{operator: Exists, value: a}]}',
      'scheduling.tolerations[0].value: value must be left out where operator is Exists',
    ],
    [
      'a namespace twice',
      'envoyGateway: {proxyNamespaces: [a, a]}',
      'envoyGateway.proxyNamespaces[1]: "a" is already at envoyGateway.proxyNamespaces[0]: each may be there once',
    ],
    ['a list', '[]', 'a list is not an object with fields'],
    ['a text', 'hello', 'a text is not an object with fields'],
    ['two documents', 'namespace: a\n---\nnamespace: b', 'holds more than one YAML document: keep one'],
    [
      'what is not YAML',
      'a: [\n',
      'line 2: the indentation does not fit what is around it, or a bracket is not closed',
    ],
    [
      'a key twice',
      'namespace: a\nnamespace: b',
      'line 2: this key is in line 1 already: remove one of them',
    ],
    ['a key of every object', '__proto__: {replicas: 3}', '__proto__: there is no such field'],
  ])('is refused with %s', (_, text, fault) => {
    expect(faultsOf(text)).toEqual([fault]);
  });

  it('has all faults reported at once, each on a line', () => {
    expect(faultsOf('namespace: A\nfoo: 1\noperator: {replicas: 0}')).toHaveLength(3);
    for (const fault of faultsOf('"a\\nb": 1\n"\\e[31m": 2\nnamespace: "a\\nb"') ?? [])
      expect(fault).not.toMatch(/[\u0000-\u001f]/);
  });
});

describe('the schema of the configuration', () => {
  const schema = JSON.parse(readFileSync('synth/config.json', 'utf8')) as Readonly<Record<string, unknown>>;
  const { $schema: dialect, ...own } = schema;
  // Editors ignore unknown keywords.
  const validate = new Ajv({ strict: false, formats: { int32: true } }).compile(own);

  it('is one that editors read', () => {
    expect(dialect).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(validate({})).toBe(true);
    expect(validate(everyKnob)).toBe(true);
    expect(validate({ operator: { replicas: 'three' } })).toBe(false);
    expect(validate({ namespace: 'Mesh' })).toBe(false);
  });
});

it('meshPods.extraEnv takes the names that pool.extraEnv of a MeshTailnet takes', () => {
  const ofMeshTailnet = readFileSync('schema/mesh-tailnet.json', 'utf8');
  const [, pattern = 'none'] = /"pattern": "(\^\(GOGC[^"]*)"/.exec(ofMeshTailnet) ?? [];
  expect(readFileSync('synth/config.json', 'utf8')).toContain(`name.matches('${pattern}')`);
});
