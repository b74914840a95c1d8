import type { Fields } from '../../../api/json.ts';
import { quantityOf } from '../../../api/quantity.ts';
import { isVendorAPI, MESH_POD, RELAY, relayName } from '../../../api/names.ts';
import type { PoolOptions } from './objects.ts';

type Texts = Readonly<Record<string, string>>;

/** Until kube-proxy and Envoys have noticed that a mesh pod stops, it still serves for this time. */
export const PRE_STOP_SECONDS = 5;

/** What containerboot and tailscaled write: temporary files and the socket. */
export const WRITABLE = [
  { name: 'tmp', mountPath: '/tmp' },
  { name: 'run', mountPath: '/var/run/tailscale' },
] as const;

const CA_FOLDER = '/etc/mesh-gateway/ca';

/*
 * No liveness and no startup probe: either could only restart a mesh pod whose control server is away, or whose device
 * waits for approval. Where tailscaled leaves its running state, containerboot exits by itself.
 */
export function meshdContainer(options: PoolOptions): Fields {
  const { image = MESH_POD.image, resources } = { ...options.defaults, ...options.tailnet.spec.pool };
  return {
    name: MESH_POD.container,
    image,
    env: environment(options),
    ports: portsOf(MESH_POD.ports).filter(({ name }) => name !== 'proxy' || options.relayImage === undefined),
    readinessProbe: {
      httpGet: { path: '/healthz', port: 'metrics' },
      // tailscaled trusts an address of a peer for 6.5 s: until then, replies go to where this device was before.
      initialDelaySeconds: 7,
      periodSeconds: 1,
      timeoutSeconds: 1,
      failureThreshold: 3,
    },
    ...CONFINED,
    ...(resources ? { resources } : {}),
    volumeMounts: [
      ...WRITABLE,
      ...(options.ca === undefined ? [] : [{ name: 'ca', mountPath: CA_FOLDER, readOnly: true }]),
    ],
  };
}

function portsOf(ports: Readonly<Record<string, number>>) {
  return Object.entries(ports).map(([name, containerPort]) => ({ name, containerPort, protocol: 'TCP' }));
}

/** How both containers stop, and what they may not do. */
const CONFINED: Fields = {
  lifecycle: { preStop: { sleep: { seconds: PRE_STOP_SECONDS } } },
  terminationMessagePolicy: 'FallbackToLogsOnError',
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    capabilities: { drop: ['ALL'] },
  },
};

/**
 * The front of the pod: the proxy that Envoys and health checks use, and what carries datagrams between Envoys and meshd. It
 * dials devices and serves VIP services by the socket of tailscaled, which it may use because it runs as the same user. It has no
 * liveness probe either: it ends if it cannot go on.
 */
export function relayContainer({ tailnet }: PoolOptions, image: string): Fields {
  const fieldRefs = [
    ['POD_NAMESPACE', 'metadata.namespace'],
    ['POD_IPS', 'status.podIPs'],
  ] as const;
  return {
    name: RELAY.container,
    image,
    args: ['relay'],
    env: [
      ...fieldRefs.map(variableOf),
      { name: 'RELAY_CONFIG_MAP', value: relayName(tailnet.metadata.name) },
      { name: 'MESHD_SOCKET', value: RELAY.meshdSocket },
      { name: 'KEPT_FILE', value: RELAY.keptFile },
    ],
    ports: portsOf({ proxy: MESH_POD.ports.proxy, [RELAY.portName]: RELAY.ports.http }),
    readinessProbe: {
      httpGet: { path: '/readyz', port: RELAY.portName },
      periodSeconds: 1,
      timeoutSeconds: 1,
      failureThreshold: 3,
    },
    ...CONFINED,
    volumeMounts: WRITABLE.filter(({ name }) => name === 'run'),
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '512Mi' } },
  };
}

/** Variables that others refer to come first; extraEnv replaces defaults, and never what makes a pod a mesh pod. */
function environment(options: PoolOptions): readonly Fields[] {
  const { tailnet, defaults } = options;
  const extra = [...(defaults.extraEnv ?? []), ...(tailnet.spec.pool.extraEnv ?? [])];
  const values = {
    ...defaultVariables(options),
    ...Object.fromEntries(extra.map(({ name, value }) => [name, value])),
    ...fixedVariables(options),
  };
  return [
    ...POD_FIELDS.map(variableOf),
    ...Object.entries(values)
      .filter(([name]) => !POD_FIELDS.some(([field]) => field === name))
      .map(([name, value]) => ({ name, value })),
  ];
}

function variableOf([name, fieldPath]: readonly [name: string, fieldPath: string]): Fields {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

const POD_FIELDS = [
  ['POD_NAME', 'metadata.name'],
  ['POD_UID', 'metadata.uid'],
  ['POD_IP', 'status.podIP'],
  ['POD_IPS', 'status.podIPs'],
] as const;

function defaultVariables(options: PoolOptions): Texts {
  const loginServer = loginServerOf(options);
  const softLimit = softMemoryLimitOf(options);
  return {
    ...(softLimit === undefined ? {} : { GOMEMLIMIT: String(softLimit) }),
    // A mesh pod that waits for approval or for its control server is not restarted, so it is ready as soon as that ends.
    TS_BOOT_TIMEOUT: '24h',
    // A self-hosted tailnet sends no logs to the vendor; one of the vendor may require them.
    ...(loginServer === undefined ? {} : { TS_NO_LOGS_NO_SUPPORT: 'true' }),
    // The relay that is part of a headscale without TLS has none either.
    ...(loginServer !== undefined && new URL(loginServer).protocol === 'http:'
      ? { TS_DEBUG_USE_DERP_HTTP: 'true' }
      : {}),
  };
}

/** The part of the memory limit from which Go collects garbage whenever it has to. */
const SOFT_LIMIT = 0.8;

/** Otherwise the heap of tailscaled may double between two collections, past the limit. Undefined for a pod without one. */
function softMemoryLimitOf({ tailnet, defaults }: PoolOptions): number | undefined {
  const { resources } = { ...defaults, ...tailnet.spec.pool };
  const limit = quantityOf(String(resources?.limits?.['memory'] ?? ''));
  return limit === undefined ? undefined : Math.floor(limit * SOFT_LIMIT);
}

/*
 * Every port of a mesh pod that others use listens on the pod's address only. A tailscaled without a TUN device forwards connections of the
 * tailnet to the same port of 127.0.0.1, past all NetworkPolicies: a proxy that listens there, or on all addresses, is open
 * to each device that the tailnet lets reach this one.
 */
function fixedVariables(options: PoolOptions): Texts {
  const loginServer = loginServerOf(options);
  const { proxyURL } = options.tailnet.spec;
  const { ports } = MESH_POD;
  return {
    TS_KUBE_SECRET: '$(POD_NAME)',
    TS_HOSTNAME: ['$(POD_NAME)', options.installation].filter(Boolean).join('-'),
    TS_AUTH_ONCE: 'true',
    TS_USERSPACE: 'true',
    TS_ACCEPT_DNS: 'false',
    ...proxiesOf(options),
    // containerboot refuses brackets around an IPv4 address, and adds those of an IPv6 address in POD_IPS.
    TS_LOCAL_ADDR_PORT: `$(POD_IP):${ports.metrics}`,
    TS_ENABLE_METRICS: 'true',
    TS_ENABLE_HEALTH_CHECK: 'true',
    // Otherwise containerboot advertises all VIP services that it finds configured, whether or not their targets are healthy.
    ...(options.relayImage === undefined
      ? {}
      : { TS_SOCKET: RELAY.meshdSocket, TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT: 'false' }),
    ...(loginServer === undefined ? {} : { TS_EXTRA_ARGS: `--login-server=${loginServer}` }),
    ...(proxyURL === undefined
      ? {}
      : { HTTPS_PROXY: proxyURL, HTTP_PROXY: proxyURL, NO_PROXY: API_SERVER.join(',') }),
    // The folders that Go reads by default, and that of the CA.
    ...(options.ca === undefined
      ? {}
      : { SSL_CERT_DIR: ['/etc/ssl/certs', '/etc/pki/tls/certs', CA_FOLDER].join(':') }),
  };
}

/**
 * The front is the proxy of its pod, and uses the SOCKS5 proxy of tailscaled for datagrams alone. Without it tailscaled itself is:
 * where both variables have the same value, one listener serves both protocols.
 */
function proxiesOf({ relayImage }: PoolOptions): Texts {
  if (relayImage !== undefined)
    return { TS_OUTBOUND_HTTP_PROXY_LISTEN: '', TS_SOCKS5_SERVER: MESH_POD.socks };
  const address = `[$(POD_IP)]:${MESH_POD.ports.proxy}`;
  return { TS_OUTBOUND_HTTP_PROXY_LISTEN: address, TS_SOCKS5_SERVER: address };
}

const API_SERVER = ['kubernetes.default.svc', '$(KUBERNETES_SERVICE_HOST)'];

/** Undefined where tailscaled's own default is right: the vendor's API is not the server that devices join. */
function loginServerOf({ tailnet, controlURL }: PoolOptions): string | undefined {
  const { loginServer } = tailnet.spec;
  if (loginServer !== undefined) return loginServer;
  return isVendorAPI(controlURL) ? undefined : controlURL;
}
