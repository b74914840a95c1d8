import type { EndpointStatus, Kinds, MeshEndpoint } from '../../api/generated/types.ts';
import type { Why } from '../../api/problem.ts';
import { hostAndPortOf } from '../../api/socket-address.ts';
import type { Verdict } from '../../health/health.ts';
import type { Check, CheckSettings, CheckTls } from '../../health/check.ts';
import { healthCheckOf, splitHost, timesOf } from '../../traffic/settings/envoy-health-check.ts';
import type { TypedCheck } from '../../traffic/settings/envoy-health-check.ts';
import { servesTls } from '../../traffic/upstream-protocol.ts';
import type { UpstreamProtocol } from '../../traffic/upstream-protocol.ts';
import { upstreamTlsOf } from '../../traffic/upstream-tls.ts';
import type { ReadCaBundle } from '../../traffic/upstream-tls.ts';
import type { EndpointInputs, EndpointProblem } from './inputs/inputs.ts';
import type { RelayedPath } from './relay-ports.ts';

/** Whether and how an endpoint is checked. */
export type PlannedCheck =
  | { readonly is: 'off' }
  | { readonly is: 'on'; readonly check: Check }
  /** What it needs is not known yet. */
  | { readonly is: 'pending' }
  /** It cannot be checked: its health stays as it was written, or else this is its error. */
  | { readonly is: 'impossible'; readonly problem: EndpointProblem };

/** What the check of an endpoint depends on, beside the endpoint. */
export type CheckContext = {
  readonly inputs: EndpointInputs;
  readonly relayed: RelayedPath | undefined;
  readonly namespace: string;
  /** The domain of the object. */
  readonly domain: string;
  /** The MeshTailnet of the domain; undefined where there is none that the object may use. */
  readonly tailnet: Kinds['MeshTailnet'] | undefined;
  readonly readCa: ReadCaBundle;
};

/** The check of an endpoint, which is the one that Envoy makes where it can. */
export function checkOf(endpoint: MeshEndpoint, context: CheckContext): PlannedCheck {
  const healthCheck = healthCheckOf({ endpoint });
  if (!healthCheck) return { is: 'off' };
  const { inputs, tailnet } = context;
  if (!tailnet) return PENDING;
  if (inputs.checkProblem) return impossible('InvalidReference', inputs.checkProblem);
  if (inputs.isCheckPending) return PENDING;
  const path = pathTo(endpoint, tailnet, context);
  if ('is' in path) return path;
  const settings = settingsOf(healthCheck, endpoint, context);
  if ('is' in settings) return settings;
  return {
    is: 'on',
    check: {
      tailnet: tailnet.metadata.name,
      namespace: context.namespace,
      ...path,
      ...timesOf(healthCheck),
      settings,
    },
  };
}

/** Why there is no check. */
type NoCheck = Extract<PlannedCheck, { readonly is: 'pending' | 'impossible' }>;

const PENDING: NoCheck = { is: 'pending' };

function impossible(reason: EndpointProblem['reason'], why: Why): NoCheck {
  return { is: 'impossible', problem: { reason, ...why } };
}

/** The path of traffic. */
function pathTo(
  { meshIP, port, protocol, externalTarget }: MeshEndpoint,
  { metadata }: Kinds['MeshTailnet'],
  { inputs, relayed }: CheckContext,
): Pick<Check, 'target' | 'via'> | NoCheck {
  if (externalTarget !== undefined) {
    const { addresses = [], error } = inputs;
    if (addresses.length === 0) return error ? { is: 'impossible', problem: error } : PENDING;
    return { target: { addresses, port: hostAndPortOf(externalTarget).port }, via: { is: 'direct' } };
  }
  const target = { addresses: [meshIP], port };
  if (protocol !== 'UDP') return { target, via: { is: 'pool' } };
  if (relayed && 'port' in relayed) return { target, via: { is: 'relay', port: relayed.port } };
  return impossible('CannotBeChecked', {
    text: `UDP cannot be checked through the proxies in spec.pool.addresses of MeshTailnet ${metadata.name}`,
    fix: 'set healthCheck.enabled to false',
  });
}

function settingsOf(
  check: TypedCheck,
  endpoint: MeshEndpoint,
  context: CheckContext,
): CheckSettings | NoCheck {
  switch (check.type) {
    case 'HTTP': {
      const tls = tlsOf(endpoint, 'HTTP/1.1', context);
      if (tls && 'is' in tls) return tls;
      const { path, expectedStatus } = check;
      const { headers: secret = [] } = context.inputs;
      const { host, headers } = splitHost([...Object.entries(check.headers ?? {}), ...secret]);
      return { type: 'HTTP', host: host || endpoint.meshFQDN, path, headers, expectedStatus, tls };
    }
    case 'GRPC': {
      const tls = tlsOf(endpoint, 'HTTP/2', context);
      if (tls && 'is' in tls) return tls;
      const { host } = splitHost(Object.entries(check.headers ?? {}));
      return { type: 'GRPC', authority: host || endpoint.meshFQDN, service: check.service ?? '', tls };
    }
    case 'TCP':
    case 'UDP':
      return { type: check.type };
  }
}

/** The TLS that Envoy originates to an endpoint, or would if it did not pass TLS through; undefined without TLS. */
function tlsOf(
  endpoint: MeshEndpoint,
  protocol: UpstreamProtocol,
  { inputs, domain, readCa }: CheckContext,
): CheckTls | NoCheck | undefined {
  const { tls } = endpoint;
  if (!servesTls(endpoint) && !tls) return undefined;
  const given = tls?.caRef ? inputs.ca : tls?.ca;
  const { serverName, ca, minVersion, insecureSkipVerify } = upstreamTlsOf(endpoint, {
    domain,
    protocol,
    ca: given,
  });
  if (tls?.caRef && given === undefined && !insecureSkipVerify) return PENDING;
  const bundle = ca === undefined ? undefined : readCa(ca);
  if (bundle?.is === 'invalid')
    return impossible('InvalidReference', { text: `tls.ca cannot be read: ${bundle.why}` });
  return {
    serverName: serverName.is === 'fixed' ? serverName.name : endpoint.meshFQDN,
    ca: bundle?.pem,
    minVersion,
    insecureSkipVerify,
  };
}

/** The verdict that a status entry shows; undefined where the endpoint was not decided by checks. */
export function writtenVerdict(entry: EndpointStatus | undefined): Verdict | undefined {
  if (entry?.lastChecked === undefined) return undefined;
  const lastChecked = new Date(entry.lastChecked);
  if (entry.status === 'Healthy') return { is: 'healthy', lastChecked };
  return { is: 'unhealthy', error: entry.error ?? 'unhealthy', code: undefined, lastChecked };
}
