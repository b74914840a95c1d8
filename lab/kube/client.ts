import { kubeDiscovery } from './discovery.ts';
import type { KubeDiscovery } from './discovery.ts';
import { errorOfAnswer } from './error.ts';
import { refOf } from './object.ts';
import type { KubeObject, KubeRef, KubeType } from './object.ts';
import { kubeTransport } from './transport.ts';
import type { KubeAccess, KubeAnswer, KubeTransport } from './transport.ts';

/** Query parameters of a request: { dryRun: 'All' }. */
type KubeQuery = Readonly<Record<string, string>>;

/** A body other than JSON. */
type KubeContent = { readonly contentType?: string };

/** What one can do with a cluster. Refusals become a KubeError, but for request(), which gives any answer as it is. */
export interface KubeClient {
  readonly access: KubeAccess;
  request(method: string, path: string, body?: unknown, content?: KubeContent): Promise<KubeAnswer>;
  /** The path of an object, or of all objects of a kind where no name is given. Also tells whether a kind is served. */
  pathOf(of: KubeType & { readonly name?: string }): Promise<string>;
  /** Server-side apply; fields that someone else has set are taken over. */
  apply(object: KubeObject, query?: KubeQuery): Promise<KubeObject>;
  create(object: KubeObject, query?: KubeQuery): Promise<KubeObject>;
  get(ref: KubeRef): Promise<KubeObject>;
  list(type: KubeType, query?: KubeQuery): Promise<readonly KubeObject[]>;
  /** Deletes an object; one that is not there is no error. Finalizers may keep it for a while: see waitForAbsence. */
  remove(ref: KubeRef, query?: KubeQuery): Promise<void>;
  /** Merges into the status; what else the object says is left alone. */
  patchStatus(ref: KubeRef, status: unknown): Promise<KubeObject>;
  /** Puts the status of the given object in the place of the one that is there. */
  replaceStatus(object: KubeObject, query?: KubeQuery): Promise<KubeObject>;
  /** The same cluster, spoken to as someone else. */
  withToken(token: string): KubeClient;
}

const FIELD_MANAGER = 'mesh-gateway-tests';

/** A client of the cluster; nothing is sent yet. */
export function kubeClient(access: KubeAccess): KubeClient {
  const transport = kubeTransport(access);
  const get = (path: string) => transport({ method: 'GET', path, token: access.token });
  return clientOf(access, transport, kubeDiscovery(get));
}

/** Kinds are discovered by whoever the client was made for: another token may not even look around. */
function clientOf(access: KubeAccess, transport: KubeTransport, discover: KubeDiscovery): KubeClient {
  const { token } = access;
  const request: KubeClient['request'] = (method, path, body, { contentType } = {}) =>
    transport({ method, path, token, body, ...(contentType === undefined ? {} : { contentType }) });
  const call = async (method: string, path: string, body?: unknown, content?: KubeContent) => {
    const answer = await request(method, path, body, content);
    if (answer.status >= 300) throw errorOfAnswer(`${method} ${path}`, answer);
    return answer.body as KubeObject;
  };
  const pathOf: KubeClient['pathOf'] = async ({ name, ...type }) =>
    name === undefined ? await discover(type) : `${await discover({ ...DEFAULT, ...type })}/${name}`;
  return {
    access,
    request,
    pathOf,
    apply: async (object, query = {}) => {
      const all = { fieldManager: FIELD_MANAGER, force: 'true', ...query };
      const path = (await pathOf(refOf(object))) + queryText(all);
      return await call('PATCH', path, object, { contentType: 'application/apply-patch+yaml' });
    },
    create: async (object, query = {}) =>
      await call('POST', (await discover({ ...DEFAULT, ...typeOf(object) })) + queryText(query), object),
    get: async ref => await call('GET', await pathOf(ref)),
    list: async ({ apiVersion, kind, ...where }, query = {}) => {
      const path = await discover({ apiVersion, kind, ...where });
      const { items } = (await call('GET', path + queryText(query))) as unknown as List;
      // Items of a list do not say what they are.
      return items.map(item => ({ ...item, apiVersion, kind }));
    },
    remove: async (ref, query = {}) => {
      const path = (await pathOf(ref)) + queryText(query);
      const answer = await request('DELETE', path);
      if (answer.status >= 300 && answer.status !== 404) throw errorOfAnswer(`DELETE ${path}`, answer);
    },
    patchStatus: async (ref, status) =>
      await call('PATCH', `${await pathOf(ref)}/status`, { status }, { contentType: MERGE }),
    replaceStatus: async (object, query = {}) =>
      await call('PUT', `${await pathOf(refOf(object))}/status${queryText(query)}`, object),
    withToken: other => clientOf({ ...access, token: other }, transport, discover),
  };
}

/** Where an object is that does not say it. Kinds without namespaces disregard it. */
const DEFAULT = { namespace: 'default' };

const MERGE = 'application/merge-patch+json';

type List = { readonly items: readonly KubeObject[] };

function typeOf({ apiVersion, kind, metadata: { namespace } }: KubeObject): KubeType {
  return { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }) };
}

function queryText(query: KubeQuery): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? '' : `?${text}`;
}
