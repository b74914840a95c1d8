import { METRIC_NAMES } from './metric-names.ts';
import { row } from './row.ts';
import type { NamedTest, Table } from './row.ts';
import { REAL_TRAFFIC, ROUTE_KINDS, SERVICE_TABLES, WRITTEN } from './service.ts';
import { DECIDED, REFUSED, STATE_TABLES } from './states.ts';

const NAMES = 'test/contract-checklist/names.test.ts';
const TAILNET = 'test/controllers/mesh-tailnet/controller.test.ts';
const COORDINATION = 'test/controllers/vip-services/mesh-gateway.test.ts';
const ALERTS = 'test/synth/alerts.test.ts';
/** Settings of a real operator process. */
const SETTINGS = 'test/api-server/processes/settings.test.ts';
/** The cases of the tests of doctor. */
const BREAKS = 'test/support/tools/breaks.ts';

const UNUSED: NamedTest = [
  'test/traffic/unused.test.ts',
  'is reported with the reason $reason, the field and the fix',
];
const ALERT: NamedTest = [ALERTS, '$sentence'];
const FIRING_WHEN_DOWN: NamedTest = [ALERTS, 'it is down for 3 minutes'];
const CREDENTIALS: NamedTest = [TAILNET, 'with a wrong secret, at %s'];
const LABELS: NamedTest = [
  'test/controllers/mesh-tailnet/pool/objects.test.ts',
  'has the label by which network policies select it',
];
const CONTAINERS: NamedTest = [NAMES, 'are those of the containers'];
const DEFAULTS: NamedTest = [NAMES, 'have the defaults of the contract'];
const SUGGESTED: NamedTest = ['test/synth/config.test.ts', 'has the documented defaults'];
const FROM_ENVIRONMENT: NamedTest = [
  'test/standalone/process.test.ts',
  'has MAX_MESSAGE_SIZE and GRPC_KEEPALIVE_TIME of its environment',
];
const INSTALLED: NamedTest = [
  'test/cluster/install/monitoring.test.ts',
  'reaches both pods of both processes',
];

const OBJECTS: readonly Table[] = [
  {
    name: 'Kind',
    columns: ['Item', 'Value'],
    rows: [
      row(['apiVersion', '{api_group}/v1alpha1'], [NAMES, 'has group, version, kind and scope']),
      row(['kind', 'MeshEndpoints'], [NAMES, 'has group, version, kind and scope']),
      row(['scope', 'namespaced'], [NAMES, 'has group, version, kind and scope']),
      row(
        ['dynamic form', 'tagSelectors and serviceDiscovery without endpoints'],
        [NAMES, 'needs no endpoints with %s'],
        [
          'test/controllers/mesh-endpoints/discovery/discovery.test.ts',
          'is resolved in routes as with static endpoints, before its status is written and after',
        ],
      ),
    ],
  },
  {
    name: 'Check types',
    columns: ['Type', 'Semantics'],
    rows: [
      row(
        ['HTTP', 'path-based and compares the status code'],
        [
          'test/health/http.test.ts',
          'sends one GET to the address and port of the endpoint, with the host and headers of the check',
        ],
        ['test/health/http.test.ts', 'that expects $expects and gets $responds is $result.is'],
      ),
      row(
        ['TCP', 'connection-based'],
        ['test/health/tcp.test.ts', 'succeeds as soon as the service accepts the connection, and closes it'],
        ['test/health/tcp.test.ts', 'fails where nothing listens'],
      ),
      row(
        ['UDP', 'echo-based and described as limited'],
        [
          'test/health/udp.test.ts',
          'sends one datagram of 16 bytes to the port of the endpoint, and takes any reply for an answer',
        ],
      ),
    ],
  },
  {
    name: 'Backend reference of a route',
    columns: ['Field', 'Value'],
    rows: [
      row(['group', '{api_group}'], ROUTE_KINDS, UNUSED),
      row(['kind', 'MeshEndpoints'], ROUTE_KINDS, [
        'test/tools/trace-all.test.ts',
        'is empty for a route without MeshEndpoints',
      ]),
      row(['name', 'name of an existing MeshEndpoints resource; must match'], UNUSED),
      row(['port', 'must match an endpoint port'], UNUSED, [
        'test/traffic/resolve-route.test.ts',
        'has the endpoints with exactly the port of the backendRef',
      ]),
      row(['HTTPRoute', 'gateway API v1'], ROUTE_KINDS, REAL_TRAFFIC),
      row(
        ['TCPRoute', 'gateway API v1alpha2'],
        ROUTE_KINDS,
        REAL_TRAFFIC,
        ['test/cluster/traffic/l4-status.test.ts', 'has traffic and ResolvedRefs True'],
        ['test/kubernetes/source.test.ts', 'is read in the preferred version that is served'],
        ['test/api/decode-route.test.ts', 'of kind %s is read the same in version %s'],
      ),
    ],
  },
  {
    name: 'MeshGateway',
    columns: ['Field', 'Type'],
    rows: [
      row(
        ['spec.serviceCoordination.enabled', 'bool'],
        [COORDINATION, 'registers nothing while it is not enabled, and keeps what is registered'],
      ),
      row(
        ['spec.serviceCoordination.strategy', 'string, value `shared` shown'],
        [COORDINATION, 'makes a service of another installation a conflict with the strategy isolated'],
      ),
      row(
        ['annotation {api_group}/force-cleanup', '`true`: cleanup of stale service registrations'],
        [
          'test/controllers/vip-services/cleanup.test.ts',
          'removes stale registrations, deletes services without others, reports both and goes away',
        ],
      ),
    ],
  },
  {
    name: 'MeshRoutePolicy',
    columns: ['Item', 'Description'],
    rows: [
      row(
        ['MeshRoutePolicy', 'advanced routing policies'],
        [
          'test/traffic/route-policy.test.ts',
          'orders endpoints by the first entry that they match, and those without a match last',
        ],
      ),
    ],
  },
];

const OPERATION: readonly Table[] = [
  {
    name: 'Operational interfaces',
    columns: ['Interface', 'Method / kind', 'Location shape', 'Payload'],
    rows: [
      row(
        ['Operator metrics', 'HTTP GET', '`http://<operator_host>:8080/metrics`', 'Prometheus text'],
        ['test/telemetry/http.test.ts', 'is answered as Prometheus reads it'],
        INSTALLED,
        DEFAULTS,
      ),
      row(
        ['Operator profiling', 'HTTP GET', '`http://<operator_host>:8080/debug/pprof/<profile>`', 'profiles'],
        ['test/telemetry/pprof.test.ts', 'names each profile, and each exists'],
        [
          'test/telemetry/pprof.test.ts',
          'is text for any value of debug, with a note that these are not goroutines',
        ],
      ),
      row(
        [
          'Extension server metrics',
          'HTTP GET',
          '`http://<extension_server_host>:8080/metrics`',
          'metrics text',
        ],
        INSTALLED,
        DEFAULTS,
      ),
      row(
        [
          'Extension server gRPC',
          'gRPC',
          '`<extension_server_host>:5005`, plaintext',
          '`grpc.health.v1.Health`',
        ],
        ['test/extension/grpc/health.test.ts', 'returns the status of "%s"'],
        ['test/extension/grpc/reflection.test.ts', 'lists all services, itself and health included'],
        ['test/synth/processes.test.ts', 'has the address that Envoy Gateway and both processes use'],
      ),
      row(
        ['Control API call', 'HTTP GET', '`{control_api_url}/api/v2/tailnet`', 'not shown'],
        ['test/control/requirements.test.ts', 'takes a status of %i as reachable'],
      ),
      row(
        [
          'Extension manager',
          'hostname',
          '`<extension_server_service>.{operator_namespace}.svc.cluster.local`',
          '5005',
        ],
        ['test/synth/processes.test.ts', 'has the address that Envoy Gateway and both processes use'],
      ),
    ],
  },
  METRIC_NAMES,
  {
    name: 'Alert rules',
    columns: ['Name', 'Condition'],
    rows: [
      row(
        ['HighReconciliationErrorRate', 'error rate over total reconciles above 0.1 over 5m, held 10m'],
        [ALERTS, 'are those of the contract, and some more'],
        ALERT,
      ),
      row(
        ['ExtensionServerDown', 'extension server target down for 3m'],
        [ALERTS, 'are those of the contract, and some more'],
        FIRING_WHEN_DOWN,
        ['test/cluster/install/monitoring.test.ts', 'notices that an extension server is down'],
      ),
      row(
        ['HighMemoryUsage', 'manager container working-set memory above 0.8 of its limit, held 10m'],
        [ALERTS, 'are those of the contract, and some more'],
        ALERT,
      ),
    ],
  },
  {
    name: 'Workloads',
    columns: ['Workload', 'Names'],
    rows: [
      row(['Operator', 'a deployment with container `manager`'], CONTAINERS),
      row(['Extension server', 'a deployment with container `extension-server`'], CONTAINERS),
      row(
        ['Endpoint pods', 'stateful sets labelled `app.kubernetes.io/name=mesh-endpoint`, container `meshd`'],
        LABELS,
        CONTAINERS,
      ),
    ],
  },
];

const SAFETY: readonly Table[] = [
  {
    name: 'Authentication',
    columns: ['Sentence'],
    rows: [
      row(
        ['OAuth client credentials in the Secret `mesh-oauth` with keys `client-id` and `client-secret`'],
        [NAMES, 'are those of the Secret with the credentials'],
        [TAILNET, 'without a Secret, and reports how to create it'],
        [TAILNET, 'where the Secret lacks a key'],
      ),
      row(
        ['The OAuth client requires scopes: `device:create`, `device:read`, `device:write`, `tailnet:read`'],
        ['test/control/requirements.test.ts', 'is named by its real name, at %s'],
        [TAILNET, 'where the OAuth client lacks a scope for %s, which needs %s'],
      ),
      row(
        ['After the secret is changed, the operator deployment must be restarted to pick it up'],
        [TAILNET, 'is seen within one interval, without a restart'],
      ),
      row(
        [
          'A service account for each process; the operator may create, the extension server get `meshendpoints`',
        ],
        [NAMES, 'include those of the contract'],
        ['test/synth/processes.test.ts', 'grants the processes what their code declares'],
      ),
      row(
        ['A health check may send custom headers via `healthCheck.headers`'],
        [
          'test/extension/envoy-cluster/health-check.test.ts',
          'by HTTP sends literal headers, except those for which Envoy rejects a cluster',
        ],
      ),
    ],
  },
  {
    name: 'Error signals',
    columns: ['Condition', 'Signal'],
    rows: [
      row(
        ['Endpoint unhealthy', 'status.endpoints[].status = `Unhealthy` with status.endpoints[].error'],
        WRITTEN,
        DECIDED,
      ),
      row(
        [
          'Resource kind not installed',
          'no matches for kind `MeshEndpoints`; CRD `meshendpoints.{api_group}`',
        ],
        [NAMES, 'has group, version, kind and scope'],
        ['test/api-server/kinds/crds.test.ts', 'is established, and its schema is structural'],
      ),
      row(
        ['Invalid OAuth credentials', 'log messages: failure to authenticate with the control API'],
        CREDENTIALS,
      ),
      row(
        ['Device creation failure', 'log message: failed to create device'],
        [
          'test/controllers/mesh-tailnet/pool/limits.test.ts',
          'does not write its status for each error of the control API, and waits between its requests',
        ],
      ),
      row(
        ['Operator crash', '`CrashLoopBackOff`; missing OAuth secret, RBAC permission missing, `OOMKilled`'],
        [TAILNET, 'without a Secret, and reports how to create it'],
        [
          'test/api-server/processes/processes.test.ts',
          'reports a right that it lacks, and neither exits nor leads until its caches have synced',
        ],
        ['test/tools/doctor.test.ts', 'names %s'],
        [BREAKS, 'RBAC of the operator'],
        [BREAKS, 'a pod without enough memory'],
        [ALERTS, 'it uses nine tenths'],
        [
          'test/api-server/processes/processes.test.ts',
          'has another leader soon after one of three was killed or frozen, even if clocks were changed',
        ],
      ),
      row(
        [
          'Extension server unreachable',
          'routes not injected; gRPC connection errors; `ExtensionServerDown`',
        ],
        FIRING_WHEN_DOWN,
        ['test/cluster/install/monitoring.test.ts', 'notices that an extension server is down'],
      ),
      row(
        ['Backend mismatch', 'backendRef name or port does not match an existing resource / endpoint port'],
        UNUSED,
      ),
    ],
  },
  {
    name: 'Limits',
    columns: ['Item', 'Rule'],
    rows: [
      row(
        ['Endpoint name', 'RFC 1123, no underscores, at most 63 characters, unique within the resource'],
        REFUSED,
      ),
      row(['Port', '1 to 65535'], REFUSED),
      row(['protocol', 'one of HTTP, HTTPS, TCP, UDP, TLS, gRPC'], REFUSED),
      row(['healthCheck.type', 'one of HTTP, TCP, UDP'], REFUSED),
      row(
        ['TagSelector.operator', 'one of In, NotIn, Exists, DoesNotExist; `values` required for In/NotIn'],
        REFUSED,
      ),
      row(
        [
          'Health check defaults',
          'interval 30s, timeout 10s, thresholds 2 and 3, expectedStatus 200, path /',
        ],
        [NAMES, 'has the defaults of the contract'],
        ['test/traffic/envoy-health-check.test.ts', 'are those of the only checked endpoint'],
        [
          'test/controllers/mesh-endpoints/checks.test.ts',
          'has the defaults of the contract, and goes through the pool',
        ],
      ),
      row(
        ['Operator resources', 'limits cpu 1000m, memory 1Gi; requests cpu 200m, memory 256Mi'],
        SUGGESTED,
        ['test/synth/processes.test.ts', 'has the resources of its configuration'],
      ),
      row(['Extension server autoscaling', '2 to 10 replicas at 70 percent average CPU'], SUGGESTED, [
        'test/synth/processes.test.ts',
        'has 2 to 10 pods, at 70 percent of the CPU that they request',
      ]),
    ],
  },
  {
    name: 'Settings',
    columns: ['Variable', 'Default'],
    rows: [
      row(['CONTROLLER_MAX_CONCURRENT_RECONCILES', '10'], DEFAULTS, [
        SETTINGS,
        'of %s has %i of three reconciles run that wait for control APIs, and %i wait for them',
      ]),
      row(['SYNC_PERIOD', '30s'], DEFAULTS, [
        SETTINGS,
        'is how often objects that do not change are reconciled',
      ]),
      row(['LOG_LEVEL', '`debug` enables debug logging'], DEFAULTS, [
        'test/standalone/process.test.ts',
        'logs what it does at the level of LOG_LEVEL',
      ]),
      row(
        ['MAX_MESSAGE_SIZE', '`100M`'],
        DEFAULTS,
        ['test/extension/grpc/unary.test.ts', 'over the size limit is rejected, in both directions'],
        FROM_ENVIRONMENT,
      ),
      row(
        ['GRPC_KEEPALIVE_TIME', '`30s`'],
        DEFAULTS,
        ['test/extension/grpc/life.test.ts', 'is pinged, and stays when it answers'],
        FROM_ENVIRONMENT,
      ),
    ],
  },
  {
    name: 'Versioning',
    columns: ['Sentence'],
    rows: [
      row(['The kind is served at version `v1alpha1`'], [NAMES, 'has group, version, kind and scope']),
      row(
        ['Legacy: routes marked with a backend-type annotation; now: `backendRefs` with group and kind'],
        ROUTE_KINDS,
        ['test/tools/check.test.ts', 'the annotation of before, with the backendRefs that replace it'],
      ),
      row(
        ['Static endpoint lists may be replaced by dynamic discovery with an `Exists` selector'],
        [
          'test/controllers/mesh-endpoints/discovery/discovery.test.ts',
          'follows devices that join, leave, go offline and change their tags',
        ],
        [
          'test/controllers/mesh-endpoints/discovery/documentation.test.ts',
          'finds what the static list of examples/cluster names, on the same port',
        ],
      ),
    ],
  },
];

/** The tables of the contract that are not about fields. */
export const BEHAVIOUR_TABLES: readonly Table[] = [
  ...SERVICE_TABLES,
  ...OBJECTS,
  ...STATE_TABLES,
  ...OPERATION,
  ...SAFETY,
];
