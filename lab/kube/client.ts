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

/** A client of an API server. Error responses become a KubeError, except in request(), which returns any response. */
export interface KubeClient {
  readonly access: KubeAccess;
  request(method: string, path: string, body?: unknown, content?: KubeContent): Promise<KubeAnswer>;
  /** The path of an object, or of all objects of a kind; fails for a kind that is not served. */
  pathOf(of: KubeType & { readonly name?: string }): Promise<string>;
  /** Server-side apply with force. */
  apply(object: KubeObject, query?: KubeQuery): Promise<KubeObject>;
  create(object: KubeObject, query?: KubeQuery): Promise<KubeObject>;
  get(ref: KubeRef): Promise<KubeObject>;
  list(type: KubeType, query?: KubeQuery): Promise<readonly KubeObject[]>;
  /** Deletes an object; NotFound is no error. Finalizers may keep it for a while: see waitForAbsence. */
  remove(ref: KubeRef, query?: KubeQuery): Promise<void>;
  /** Merge-patches the status. */
  patchStatus(ref: KubeRef, status: unknown): Promise<KubeObject>;
  /** Replaces the status. */
  replaceStatus(object: KubeObject, query?: KubeQuery): Promise<KubeObject>;
  /** The same cluster with another token. */
  withToken(token: string): KubeClient;
}

const FIELD_MANAGER = 'mesh-gateway-tests';

/** Creates a client; sends nothing yet. */
export function kubeClient(access: KubeAccess): KubeClient {
  const transport = kubeTransport(access);
  const get = (path: string) => transport({ method: 'GET', path, token: access.token });
  return clientOf(access, transport, kubeDiscovery(get));
}

/** Discovery uses the token of the original client: another token may not be allowed to discover. */
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
      // Items of a list have no apiVersion and kind.
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

/** The namespace of an object that names none. Kinds without namespaces disregard it. */
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
