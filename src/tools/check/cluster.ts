import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { KindName } from '../../api/generated/kinds.ts';
import { kinds } from '../../api/generated/kinds.ts';
import { isRecord } from '../../api/json.ts';
import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { ROUTE_KINDS } from '../../api/key.ts';
import type { ResourceKind } from '../../api/key.ts';
import { restConfigSource } from '../../kubernetes/auth/config-source.ts';
import type { CommandResult, PodCommand } from '../../kubernetes/auth/pod-command.ts';
import type { PodPort } from '../../kubernetes/auth/port-forward.ts';
import { pageSizeOf, pathOfAll, SERVED } from '../../kubernetes/served-kinds.ts';
import { openTransport } from '../../kubernetes/transport/open-transport.ts';
import { KubeError } from '../../kubernetes/transport/transport.ts';
import type { KubeTransport, TextTransport } from '../../kubernetes/transport/transport.ts';
import { systemClock } from '../../runtime/clock.ts';
import { definitionIn } from '../crds/definition.ts';
import type { Definition } from '../crds/definition.ts';
import type { FindDefinition } from './definitions.ts';
import { servedObjects } from './objects.ts';
import type { Declarations, Finding } from './objects.ts';

/** Which cluster is read, as kubectl finds it, and how much of it. */
export type ClusterOptions = {
  /** Files, joined as in PATH; by default KUBECONFIG, or the file in the home folder. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  /** Only objects of this namespace are checked; others are read as far as they may be. */
  readonly namespace: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with each kind before it is read. */
  readonly onKind: (kind: string) => void;
};

/** What is read. Secrets and ConfigMaps are not; statuses have what was found in them. */
const KINDS: readonly ResourceKind[] = [
  ...(Object.keys(kinds) as readonly KindName[]),
  ...ROUTE_KINDS,
  ...(['GatewayClass', 'Gateway', 'ListenerSet', 'ReferenceGrant', 'Namespace'] as const),
  ...(['Service', 'EndpointSlice', 'Backend', 'BackendTLSPolicy', 'BackendTrafficPolicy'] as const),
  'EnvoyProxy',
];

/** Reads the objects of a cluster, with a finding for each kind that could not be read; what depends on those is not checked. */
export async function readCluster(options: ClusterOptions): Promise<Declarations> {
  const read = (transport: KubeTransport) => readDeclarations(transport, options);
  return await withCluster(options, read, 'or give files: mesh-gateway check FOLDER');
}

/** Connects to a port of a pod, which the caller closes; fails with KubeError, also after a timeout. */
export type OpenPort = (port: PodPort, timeoutMs: number) => Promise<Duplex>;

/** Runs a command in a pod; fails with KubeError, with Aborted after a timeout. */
export type RunInPod = (command: PodCommand, timeoutMs: number) => Promise<CommandResult>;

type UseCluster<T> = (
  transport: KubeTransport & TextTransport,
  openPort: OpenPort,
  runInPod: RunInPod,
) => Promise<T>;

/** Connects to a cluster as kubectl does, and closes the connections at the end; where there is none, the error has what to do. */
export async function withCluster<T>(
  options: Pick<ClusterOptions, 'kubeconfig' | 'context' | 'environment'>,
  use: UseCluster<T>,
  withoutOne = 'or check only objects in files: mesh-gateway check FOLDER',
): Promise<T> {
  const fail = (cause: Error): never => {
    const fix = `name a cluster with --kubeconfig and --context, ${withoutOne}`;
    throw new Error(`${cause.message}: ${fix}`, { cause });
  };
  const { context, environment } = options;
  const kubeconfig = options.kubeconfig ?? (environment['KUBECONFIG'] || join(homedir(), '.kube', 'config'));
  const configSource = await restConfigSource({ kubeconfig, context, environment, clock: systemClock }).catch(
    fail,
  );
  const transport = openTransport({ configSource, clock: systemClock, now: () => new Date() });
  const openPort: OpenPort = async (port, timeoutMs) => {
    const { connectToPod } = await import('../../kubernetes/auth/port-forward.ts');
    return await connectToPod(await configSource.load('refresh'), port, timeoutMs);
  };
  const run: RunInPod = async (command, timeoutMs) => {
    const { runInPod } = await import('../../kubernetes/auth/pod-command.ts');
    return await runInPod(await configSource.load('refresh'), command, timeoutMs);
  };
  try {
    return await use(transport, openPort, run);
  } catch (error) {
    if (error instanceof KubeError && error.reason === 'Unreachable') fail(error);
    throw error;
  } finally {
    await transport.close();
  }
}

/** Reads the objects of a cluster by a connection. */
export async function readDeclarations(
  transport: KubeTransport,
  { namespace, onKind }: Partial<Pick<ClusterOptions, 'namespace' | 'onKind'>> = {},
): Promise<Declarations> {
  const objects: unknown[] = [];
  const complete = new Set<ResourceKind>();
  const findings: Finding[] = [];
  const definitions = new Map<string, unknown>();
  for (const kind of KINDS) {
    onKind?.(kind);
    const listed = await listOf(kind, namespace, transport);
    objects.push(...listed.items);
    if (listed.items.length > 0 && DEFINED_ELSEWHERE.includes(SERVED[kind].group)) {
      const read = await definitionOf(kind, transport);
      if ('crd' in read) definitions.set(kind, read.crd);
      else if (!findings.some(isAboutDefinitions)) findings.push(read);
    }
    if (listed.isComplete) complete.add(kind);
    if (listed.problem !== undefined)
      findings.push({ reason: 'NotRead', about: { kind }, text: listed.problem });
  }
  const served = servedObjects(objects, complete, finderIn(definitions));
  return { ...served, findings: [...findings, ...served.findings] };
}

/** The groups of other projects, whose kinds have CRDs. */
const DEFINED_ELSEWHERE: readonly string[] = [GATEWAY_GROUP, ENVOY_GATEWAY_GROUP];

const DEFINITIONS = 'CustomResourceDefinition';

function isAboutDefinitions({ about }: Finding): boolean {
  return about?.kind === DEFINITIONS;
}

/** The CRD of a kind, or the note that it may not be read. */
async function definitionOf(
  kind: ResourceKind,
  transport: KubeTransport,
): Promise<{ readonly crd: unknown } | Finding> {
  const { group, plural } = SERVED[kind];
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.${group}`;
  try {
    return { crd: await transport.send({ verb: 'get', path }) };
  } catch (error) {
    if (!(error instanceof KubeError) || (error.reason !== 'Forbidden' && error.reason !== 'NotFound'))
      throw error;
    const text = `CRDs cannot be read, so objects of Gateway API and Envoy Gateway are not validated by them: ${error.message}`;
    return { reason: 'NotRead', mattersAs: 'note', about: { kind: DEFINITIONS }, text };
  }
}

/** Finds the definitions in CRDs, by the kinds of their objects. */
function finderIn(crds: ReadonlyMap<string, unknown>): FindDefinition {
  const known = new Map<string, Definition | undefined>();
  return (group, version, kind) => {
    const key = `${group}/${version}/${kind}`;
    if (!known.has(key)) known.set(key, definitionIn(crds.get(kind), version));
    return known.get(key);
  };
}

type Listed = {
  readonly items: readonly unknown[];
  /** Whether these are all in the cluster. */
  readonly isComplete: boolean;
  readonly problem?: string;
};

/** A kind that is not served has no objects. Where RBAC does not permit all namespaces, one is read. */
async function listOf(
  kind: ResourceKind,
  namespace: string | undefined,
  transport: KubeTransport,
): Promise<Listed> {
  try {
    return { items: await listIn(kind, '', transport), isComplete: true };
  } catch (error) {
    if (!(error instanceof KubeError) || error.reason !== 'Forbidden') throw error;
    const problem = `${SERVED[kind].plural} cannot be read, so nothing that depends on them is checked: ${error.message}`;
    if (namespace === undefined || !SERVED[kind].isNamespaced)
      return { items: [], isComplete: false, problem };
    try {
      return { items: await listIn(kind, namespace, transport), isComplete: false };
    } catch (again) {
      if (!(again instanceof KubeError) || again.reason !== 'Forbidden') throw again;
      return { items: [], isComplete: false, problem };
    }
  }
}

async function listIn(
  kind: ResourceKind,
  namespace: string,
  transport: KubeTransport,
): Promise<readonly unknown[]> {
  const served = SERVED[kind];
  for (const version of served.versions) {
    try {
      const items = await pagesOf(pathOfAll(served, version, namespace), pageSizeOf(served), transport);
      const apiVersion = served.group === '' ? version : `${served.group}/${version}`;
      // Items of a list have no apiVersion and kind.
      return items.map(item => (isRecord(item) ? { ...item, apiVersion, kind } : item));
    } catch (error) {
      if (!(error instanceof KubeError) || error.reason !== 'NotFound') throw error;
    }
  }
  return [];
}

/** All items of a list. */
export async function pagesOf(
  path: string,
  limit: number,
  transport: Pick<KubeTransport, 'send'>,
  selection: Readonly<Record<string, string>> = {},
): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  let next = '';
  do {
    const query = { ...selection, limit: String(limit), ...(next !== '' && { continue: next }) };
    const page = await transport.send({ verb: 'list', path, query });
    if (!isRecord(page) || !Array.isArray(page['items']))
      throw new KubeError('Malformed', `list ${path}: the response is not a list`);
    all.push(...(page['items'] as readonly unknown[]));
    const metadata = isRecord(page['metadata']) ? page['metadata'] : {};
    next = typeof metadata['continue'] === 'string' ? metadata['continue'] : '';
  } while (next !== '');
  return all;
}
