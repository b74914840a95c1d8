import { errorOfAnswer, KubeError } from './error.ts';
import type { KubeType } from './object.ts';
import type { KubeAnswer } from './transport.ts';

/** Returns the API path of a kind's objects, without a trailing slash. */
export type KubeDiscovery = (type: KubeType) => Promise<string>;

type Resource = { readonly name: string; readonly kind: string; readonly namespaced: boolean };

/** Discovers the paths of kinds and caches them; an unknown kind is discovered again each time, since CRDs come later. */
export function kubeDiscovery(get: (path: string) => Promise<KubeAnswer>): KubeDiscovery {
  const known = new Map<string, Resource>();
  return async type => {
    const { apiVersion, kind, namespace } = type;
    const root = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
    const key = `${apiVersion} ${kind}`;
    const resource = known.get(key) ?? (await discover(get, root, type));
    known.set(key, resource);
    const isEverywhere = !resource.namespaced || namespace === undefined;
    return `${root}${isEverywhere ? '' : `/namespaces/${namespace}`}/${resource.name}`;
  };
}

async function discover(
  get: (path: string) => Promise<KubeAnswer>,
  root: string,
  { apiVersion, kind }: KubeType,
): Promise<Resource> {
  const answer = await get(root);
  if (answer.status !== 200 && answer.status !== 404) throw errorOfAnswer(`GET ${root}`, answer);
  const { resources } = (answer.status === 200 ? answer.body : { resources: [] }) as {
    readonly resources: readonly Resource[];
  };
  const found = resources.find(resource => resource.kind === kind && !resource.name.includes('/'));
  if (found) return found;
  const served = [...new Set(resources.map(resource => resource.kind))].sort().join(', ');
  const message = `the server does not serve ${kind} in ${apiVersion}: ${served === '' ? 'nothing is there' : `there are ${served}`}`;
  throw new KubeError(message, 404, 'UnknownKind');
}
