import type { Kinds, MeshEndpoint } from '../../api/generated/types.ts';
import { MESH_POD } from '../../api/names.ts';
import type { Fields } from '../../api/json.ts';
import { endpointsOf } from '../../api/objects/endpoints.ts';
import { oldestOf, placeOf } from '../../api/objects/oldest.ts';
import { addressText } from '../../api/socket-address.ts';
import { KubeError } from '../../kubernetes/transport/transport.ts';
import type { RunInPod } from '../check/cluster.ts';
import { resourcesOf } from './conditions.ts';
import { failed, hasLabels, isReady, listAt, notChecked, ok, textAt } from './observed.ts';
import type { Line, Observed } from './observed.ts';

const CHECK = 'connect';

/** A mesh pod cannot reach an endpoint, or that could not be tried. */
type Failure = { readonly pod: string; readonly is: 'failed' | 'not checked'; readonly why: string };

/** Connects to each endpoint of a MeshEndpoints, named with or without its namespace, from each mesh pod of its tailnet. */
export async function checkConnections(
  wanted: string,
  observed: Observed,
  runInPod: RunInPod,
): Promise<readonly Line[]> {
  const found = resourcesOf(observed.declarations.objects, 'MeshEndpoints').filter(each =>
    [each.metadata.name, placeOf(each)].includes(wanted),
  );
  const [object, ...others] = found;
  if (others.length > 0) {
    const names = found.map(placeOf).join(', ');
    throw new Error(`doctor: --connect ${wanted} is the name of several MeshEndpoints: ${names}`);
  }
  if (!object) {
    const isKnown = observed.declarations.complete?.has('MeshEndpoints') !== false;
    return isKnown
      ? [failed(CHECK, `there is no MeshEndpoints ${wanted}`, 'kubectl get meshendpoints --all-namespaces')]
      : [notChecked(CHECK, 'meshendpoints cannot be read')];
  }
  const title = `MeshEndpoints ${placeOf(object)}`;
  const pool = poolOf(object, observed);
  if ('why' in pool) return [notChecked(CHECK, `${title}: ${pool.why}`)];
  const endpoints = endpointsOf(object);
  if (endpoints.length === 0) return [notChecked(CHECK, `${title} has no endpoints`)];
  const lines: Line[] = [];
  for (let from = 0; from < endpoints.length; from += AT_ONCE) {
    const batch = endpoints.slice(from, from + AT_ONCE);
    lines.push(...(await Promise.all(batch.map(endpoint => lineOf(endpoint, { title, pool, runInPod })))));
  }
  return lines;
}

const AT_ONCE = 8;

/** The mesh pods that are ready, and the tags of their devices. */
type Pool = { readonly pods: readonly MeshPod[]; readonly tags: readonly string[] };

type MeshPod = { readonly namespace: string; readonly name: string; readonly socket: string };

function poolOf(
  { spec }: Kinds['MeshEndpoints'],
  { declarations, pods }: Observed,
): Pool | { readonly why: string } {
  const tailnets = resourcesOf(declarations.objects, 'MeshTailnet');
  const tailnet = oldestOf(tailnets.filter(each => each.spec.tailnet === spec.tailnet));
  if (!tailnet) return { why: `there is no MeshTailnet with tailnet: ${spec.tailnet}` };
  const { name } = tailnet.metadata;
  if (tailnet.spec.pool.mode === 'External')
    return { why: `the proxies of MeshTailnet ${name} are no mesh pods of this cluster` };
  if (!pods.items) return { why: pods.why };
  const ready = pods.items.filter(
    pod => hasLabels(pod, { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: name }) && isReady(pod),
  );
  if (ready.length === 0) return { why: `no mesh pod of MeshTailnet ${name} is ready` };
  return {
    tags: tailnet.spec.tags,
    pods: ready.map(pod => ({
      namespace: textAt(pod, 'metadata', 'namespace'),
      name: textAt(pod, 'metadata', 'name'),
      socket: socketIn(listAt(pod, 'spec', 'containers')),
    })),
  };
}

/** Where tailscaled listens for its clients: containerboot has a default of its own. */
function socketIn(containers: readonly Fields[]): string {
  const meshd = containers.find(({ name }) => name === MESH_POD.container);
  const variable = listAt(meshd, 'env').find(({ name }) => name === 'TS_SOCKET');
  return textAt(variable, 'value') || '/tmp/tailscaled.sock';
}

type Attempt = { readonly title: string; readonly pool: Pool; readonly runInPod: RunInPod };

async function lineOf(endpoint: MeshEndpoint, { title, pool, runInPod }: Attempt): Promise<Line> {
  const { name, port, protocol, externalTarget } = endpoint;
  const what = `endpoint ${name} of ${title}`;
  if (protocol === 'UDP')
    return notChecked(CHECK, `${what}: it has the protocol UDP, which has no connections`);
  if (externalTarget !== undefined)
    return notChecked(CHECK, `${what}: Envoy connects to its externalTarget directly, not from a mesh pod`);
  const { pods, tags } = pool;
  const results = await Promise.all(pods.map(pod => failureOf(pod, endpoint, runInPod)));
  const failures = results.filter(result => result !== undefined);
  const at = addressText(endpoint);
  const count = `${pods.length} mesh pod${pods.length === 1 ? '' : 's'}`;
  if (failures.length === 0) return ok(CHECK, `${what} accepts connections at ${at} from ${count}`);
  const text = `${what} at ${at}: ${failures.map(({ pod, why }) => `${pod}: ${why}`).join('; ')}`;
  if (failures.every(({ is }) => is === 'not checked')) return notChecked(CHECK, text);
  const fix = `check that the device is online, that its service listens on port ${port}, and that the policy of the tailnet lets ${tags.join(' and ')} connect to it`;
  return failed(CHECK, text, fix);
}

const TIMEOUT_MS = 10_000;

/** Why a mesh pod does not connect; without input, tailscale nc ends as soon as it is connected. */
async function failureOf(
  { namespace, name: pod, socket }: MeshPod,
  { meshIP, port }: MeshEndpoint,
  runInPod: RunInPod,
): Promise<Failure | undefined> {
  const command = ['tailscale', `--socket=${socket}`, 'nc', meshIP, String(port)];
  try {
    const place = { namespace, pod, container: MESH_POD.container };
    const { exitCode, stderr } = await runInPod({ ...place, command }, TIMEOUT_MS);
    return exitCode === 0 ? undefined : { pod, is: 'failed', why: reasonIn(stderr) };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    switch (error.reason) {
      case 'Aborted':
        return { pod, is: 'failed', why: `no answer within ${TIMEOUT_MS / 1000} s` };
      case 'Forbidden': {
        const right = `you have no right to run commands in pods of namespace ${namespace} (get and create pods/exec)`;
        return { pod, is: 'not checked', why: right };
      }
      default:
        return { pod, is: 'not checked', why: error.message };
    }
  }
}

const MAX_REASON = 300;

/** The last line, without what tailscale and its LocalAPI add to the error of the connection. */
function reasonIn(stderr: string): string {
  const last = stderr.trim().split('\n').at(-1) ?? '';
  const [, reason = last] = /(?:dial|resolve) failure: (.*)$/.exec(last) ?? [];
  return reason === '' ? 'tailscale nc failed' : reason.slice(0, MAX_REASON);
}
