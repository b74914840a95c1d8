import { row } from './row.ts';
import type { NamedTest, Table } from './row.ts';
import { STATUS, VIP_SERVICES, WRITTEN } from './service.ts';
import { DECIDED } from './states.ts';

/** Each field is in a valid object of the corpus, and its limits in invalid ones. */
const CORPUS: NamedTest = ['test/corpus.test.ts', 'have every field and enum value, and reach every limit'];

const ENDPOINTS_OF_PORT: NamedTest = [
  'test/traffic/resolve-route.test.ts',
  'has the endpoints with exactly the port of the backendRef',
];
const PROTOCOLS: NamedTest = [
  'test/traffic/upstream-protocol.test.ts',
  'of $protocol $tls behind $kind: $expected',
];
const EXTERNAL_TARGET: NamedTest = [
  'test/traffic/external-targets.test.ts',
  'is its resolved addresses and its port, without a proxy, with either data path',
];
const READY: NamedTest = [STATUS, 'is True while an endpoint is healthy'];
const DISCOVERED: NamedTest = [
  'test/controllers/mesh-endpoints/discovery/discovery.test.ts',
  'has the devices that match as endpoints, after the static ones',
];
const SELECTOR: NamedTest = [
  'test/controllers/mesh-endpoints/discovery/discover.test.ts',
  'with %s matches devices by the forms of their tags',
];
const HTTP_CHECK: NamedTest = [
  'test/health/http.test.ts',
  'sends one GET to the address and port of the endpoint, with the host and headers of the check',
];
const ENVOY_CHECKS: NamedTest = ['test/traffic/envoy-health-check.test.ts', 'have all fields'];

const APPROVAL: NamedTest = [
  'test/controllers/mesh-tailnet/pool/reconcile.test.ts',
  'waits for approval with %j, which the condition asks for',
];

/** The tables of fields of the contract. */
export const FIELD_TABLES: readonly Table[] = [
  {
    name: 'MeshEndpointsSpec',
    fieldsOf: { kind: 'MeshEndpoints', path: 'spec' },
    columns: ['Field', 'Type', 'Required', 'Description'],
    rows: [
      row(
        [
          'tailnet',
          'string',
          'yes',
          "Tailnet domain name (a DNS-style name under the mesh network's domain)",
        ],
        CORPUS,
        ['test/traffic/permissions.test.ts', 'those with another domain are ignored'],
      ),
      row(['endpoints', '[]MeshEndpoint', 'yes', 'Endpoint definitions'], CORPUS, ENDPOINTS_OF_PORT),
      row(
        ['serviceDiscovery', 'ServiceDiscoveryConfig', 'no', 'VIP service discovery configuration'],
        CORPUS,
        VIP_SERVICES,
      ),
      row(
        ['tagSelectors', '[]TagSelector', 'no', 'Tag-based endpoint discovery configuration'],
        CORPUS,
        DISCOVERED,
      ),
    ],
  },
  {
    name: 'MeshEndpoint',
    fieldsOf: { kind: 'MeshEndpoints', path: 'spec.endpoints[]' },
    columns: ['Field', 'Type', 'Required', 'Description'],
    rows: [
      row(['name', 'string', 'yes', 'Endpoint name, unique within the resource, DNS-compliant'], CORPUS, [
        STATUS,
        'has all endpoints in the order of spec, healthy where they are not checked',
      ]),
      row(['meshIP', 'string', 'yes', 'Mesh IP address in the 100.x.x.x range'], CORPUS, [
        'test/extension/eds/envoy-endpoints.test.ts',
        'has its address and port',
      ]),
      row(['meshFQDN', 'string', 'yes', 'Fully qualified domain name inside the tailnet'], CORPUS, [
        'test/traffic/envoy-cluster-settings.test.ts',
        'set a hostname only where the server name is its own',
      ]),
      row(['port', 'int32', 'yes', 'Port, 1-65535'], CORPUS, ENDPOINTS_OF_PORT),
      row(
        ['protocol', 'string', 'yes', 'One of `HTTP`, `HTTPS`, `TCP`, `UDP`, `TLS`, `gRPC`'],
        CORPUS,
        PROTOCOLS,
      ),
      row(
        ['externalTarget', 'string', 'no', 'External target, format `hostname:port`'],
        CORPUS,
        EXTERNAL_TARGET,
      ),
      row(['healthCheck', 'HealthCheckConfig', 'no', 'Health check configuration'], CORPUS, ENVOY_CHECKS),
      row(
        ['metadata', 'map[string]string', 'no', 'Additional metadata labels'],
        CORPUS,
        [
          'test/tools/trace-all.test.ts',
          'has the metadata of each endpoint, in quotes where it is no word, and cut where it is long',
        ],
        [STATUS, 'sums up the metadata of all endpoints, in at most 256 characters'],
        [
          'test/controllers/mesh-endpoints/gauges.test.ts',
          'have the metadata of the endpoint with the keys of the configuration, and no other',
        ],
      ),
    ],
  },
  {
    name: 'HealthCheckConfig',
    fieldsOf: { kind: 'MeshEndpoints', path: 'spec.endpoints[].healthCheck' },
    columns: ['Field', 'Type', 'Required', 'Default', 'Description'],
    rows: [
      row(
        ['enabled', 'bool', 'no', 'false', 'Enable health checking'],
        CORPUS,
        ['test/traffic/envoy-health-check.test.ts', 'are disabled for endpoints without a check'],
        [STATUS, 'begins undecided where the address is another, or checks are turned on'],
      ),
      row(['type', 'string', 'no', 'HTTP', 'One of `HTTP`, `TCP`, `UDP`'], CORPUS, ENVOY_CHECKS),
      row(['path', 'string', 'no', '/', 'HTTP path for checks'], CORPUS, ENVOY_CHECKS, HTTP_CHECK),
      row(['interval', 'string', 'no', '30s', 'Check interval (duration string)'], CORPUS, ENVOY_CHECKS, [
        'test/health/monitor.test.ts',
        'a decided endpoint is checked once in each interval',
      ]),
      row(['timeout', 'string', 'no', '10s', 'Request timeout (duration string)'], CORPUS, ENVOY_CHECKS, [
        'test/health/http.test.ts',
        '%s fails at the timeout of the whole check',
      ]),
      row(
        ['healthyThreshold', 'int32', 'no', '2', 'Consecutive successes to mark healthy'],
        CORPUS,
        ENVOY_CHECKS,
        DECIDED,
      ),
      row(
        ['unhealthyThreshold', 'int32', 'no', '3', 'Consecutive failures to mark unhealthy'],
        CORPUS,
        ENVOY_CHECKS,
        DECIDED,
      ),
      row(['expectedStatus', 'int32', 'no', '200', 'Expected HTTP status code'], CORPUS, ENVOY_CHECKS, [
        'test/health/http.test.ts',
        'that expects $expects and gets $responds is $result.is',
      ]),
      row(
        ['headers', 'map[string]string', 'no', 'none', 'Custom HTTP headers sent with HTTP checks'],
        CORPUS,
        ENVOY_CHECKS,
        HTTP_CHECK,
      ),
    ],
  },
  {
    name: 'ServiceDiscoveryConfig',
    fieldsOf: { kind: 'MeshEndpoints', path: 'spec.serviceDiscovery' },
    columns: ['Field', 'Type', 'Required', 'Default', 'Description'],
    rows: [
      row(
        ['vipServices', '[]VIPServiceConfig', 'no', 'none', 'VIP services to define'],
        CORPUS,
        VIP_SERVICES,
      ),
      row(['autoRegister', 'bool', 'no', 'true', 'Automatically register as VIP service'], CORPUS, [
        'test/controllers/vip-services/controller.test.ts',
        'are not touched if others created them, unless they are to be adopted',
      ]),
    ],
  },
  {
    name: 'VIPServiceConfig',
    fieldsOf: { kind: 'MeshEndpoints', path: 'spec.serviceDiscovery.vipServices[]' },
    columns: ['Field', 'Type', 'Required', 'Description'],
    rows: [
      row(['name', 'string', 'yes', 'VIP service name'], CORPUS, VIP_SERVICES),
      row(['port', 'int32', 'yes', 'VIP service port'], CORPUS, [
        'test/controllers/vip-services/controller.test.ts',
        'keep their address when their port changes',
      ]),
      row(['targetEndpoint', 'string', 'yes', 'Name of the target endpoint'], CORPUS, VIP_SERVICES),
    ],
  },
  {
    name: 'TagSelector',
    fieldsOf: { kind: 'MeshEndpoints', path: 'spec.tagSelectors[]' },
    columns: ['Field', 'Type', 'Required', 'Description'],
    rows: [
      row(['key', 'string', 'yes', 'Tag key to match'], CORPUS, SELECTOR),
      row(['operator', 'string', 'yes', 'One of `In`, `NotIn`, `Exists`, `DoesNotExist`'], CORPUS, SELECTOR),
      row(
        ['values', '[]string', 'no', 'Values to match; required when operator is `In` or `NotIn`'],
        CORPUS,
        SELECTOR,
      ),
    ],
  },
  {
    name: 'Status: conditions[]',
    fieldsOf: { kind: 'MeshEndpoints', path: 'status.conditions[]' },
    columns: ['Field', 'Type', 'Description'],
    rows: [
      row(['type', 'string', 'e.g. `Ready`'], CORPUS, READY),
      row(['status', 'string', 'e.g. `True`'], CORPUS, READY),
      row(['reason', 'string', 'e.g. `EndpointsConfigured`'], CORPUS, READY),
      row(['message', 'string', ''], CORPUS, READY),
    ],
  },
  {
    name: 'Status: endpoints[]',
    fieldsOf: { kind: 'MeshEndpoints', path: 'status.endpoints[]' },
    columns: ['Field', 'Type', 'Description'],
    rows: [
      row(['name', 'string', ''], CORPUS, [
        'test/controllers/mesh-endpoints/relay-ports.test.ts',
        'has the relay port once it is confirmed',
      ]),
      row(
        ['status', 'string', '`Healthy` or `Unhealthy`'],
        CORPUS,
        [
          'test/traffic/health-status.test.ts',
          'is UNKNOWN if all endpoints of all priorities are unhealthy and Envoy checks them',
        ],
        WRITTEN,
      ),
      row(['lastChecked', 'string', 'ISO 8601 UTC timestamp'], CORPUS, WRITTEN),
      row(['address', 'string', '`<mesh_ip>:<port>`'], CORPUS, [
        'test/traffic/health-status.test.ts',
        'ignores a status entry of an earlier address',
      ]),
      row(['error', 'string', 'present when unhealthy, e.g. a connection timeout text'], CORPUS, WRITTEN),
    ],
  },
  {
    name: 'Status: vipServices[]',
    fieldsOf: { kind: 'MeshEndpoints', path: 'status.vipServices[]' },
    columns: ['Field', 'Type', 'Description'],
    rows: [
      row(['name', 'string', ''], CORPUS, VIP_SERVICES),
      row(['status', 'string', 'e.g. `Registered`'], CORPUS, VIP_SERVICES),
      row(['vipAddress', 'string', 'IP'], CORPUS, VIP_SERVICES),
      row(['lastUpdated', 'string', 'ISO 8601 UTC timestamp'], CORPUS, VIP_SERVICES),
    ],
  },
  {
    name: 'MeshTailnet',
    fieldsOf: { kind: 'MeshTailnet', path: 'spec' },
    columns: ['Field', 'Type', 'Description'],
    rows: [
      row(['tailnet', 'string', ''], CORPUS, [
        'test/traffic/permissions.test.ts',
        'those with another domain are ignored',
      ]),
      row(
        ['configuration.devices.preauth', 'bool', 'enables pre-authorization'],
        CORPUS,
        [
          'test/controllers/mesh-tailnet/pool/reconcile.test.ts',
          'needs no approval by default, where the tailnet requires it',
        ],
        APPROVAL,
      ),
      row(['configuration.devices.requireApproval', 'bool', 'manual approval'], CORPUS, APPROVAL),
    ],
  },
];
