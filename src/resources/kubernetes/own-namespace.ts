import type { OwnData, OwnNamespace, ReadOwnNamespace, Workload, WorkloadKind } from '../own-namespace.ts';
import { ResourceError } from '../resources.ts';
import { goneError } from './write/errors.ts';
import { fencedWrites } from './write/fenced.ts';
import type { FencedDeps } from './write/fenced.ts';
import { applyRequest, deleteRequest, failedWith, FIELD_MANAGER } from './write/requests.ts';
import { KubeError } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import type { Fields } from './unstructured.ts';
import type { KubeRequest } from './transport/transport.ts';

/** How a namespace is read and written. */
export type OwnNamespaceDeps = FencedDeps & {
  readonly namespace: string;
  /** The ServiceAccount of the operator. */
  readonly serviceAccount: string;
};

type Kind = WorkloadKind | 'Pod';

/** API path and plural of the kinds. */
const COLLECTIONS: Readonly<Record<Kind, readonly [root: string, plural: string]>> = {
  ConfigMap: ['/api/v1', 'configmaps'],
  Pod: ['/api/v1', 'pods'],
  PodDisruptionBudget: ['/apis/policy/v1', 'poddisruptionbudgets'],
  Role: ['/apis/rbac.authorization.k8s.io/v1', 'roles'],
  RoleBinding: ['/apis/rbac.authorization.k8s.io/v1', 'rolebindings'],
  Secret: ['/api/v1', 'secrets'],
  Service: ['/api/v1', 'services'],
  ServiceAccount: ['/api/v1', 'serviceaccounts'],
  StatefulSet: ['/apis/apps/v1', 'statefulsets'],
};

/** The operator's namespace in a cluster; it needs a Role there with the verbs of its requests. */
export function kubernetesNamespace(deps: OwnNamespaceDeps): OwnNamespace {
  const names = namesIn(deps.namespace);
  return { ...readNamespace(deps, names), ...changeNamespace(deps, names) };
}

type Names = ReturnType<typeof namesIn>;

/** The paths of objects in a namespace, and their names for errors. */
function namesIn(namespace: string) {
  const collectionOf = (kind: Kind) => {
    const [root, plural] = COLLECTIONS[kind];
    return `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
  };
  return {
    collectionOf,
    pathOf: (kind: Kind, name: string) => `${collectionOf(kind)}/${encodeURIComponent(name)}`,
    describe: (kind: Kind, name: string) => `${kind} ${namespace}/${name}`,
  };
}

function readNamespace(
  { transport, namespace, serviceAccount }: OwnNamespaceDeps,
  { pathOf, describe }: Names,
): ReadOwnNamespace {
  const read = async (kind: Kind, name: string): Promise<Fields | undefined> => {
    try {
      return fieldsOf(await transport.send({ verb: 'get', path: pathOf(kind, name) }));
    } catch (error) {
      if (failedWith(error, 'NotFound')) return undefined;
      throw readError(describe(kind, name), error);
    }
  };
  return {
    place: `namespace ${namespace}`,
    secret: async name => {
      const object = await read('Secret', name);
      if (!object) return undefined;
      const annotations = textsOf(fieldsOf(object['metadata'])?.['annotations']);
      return { ...dataOf(object, decoded), annotations };
    },
    configMap: async name => {
      const object = await read('ConfigMap', name);
      return object && dataOf(object, text => text);
    },
    serviceAccountToken: async audience => {
      try {
        const path = `${pathOf('ServiceAccount', serviceAccount)}/token`;
        const response = await transport.send(tokenRequest(path, audience));
        return textIn(fieldsOf(fieldsOf(response)?.['status']), 'token');
      } catch (error) {
        throw readError(describe('ServiceAccount', serviceAccount), error);
      }
    },
  };
}

function changeNamespace(
  { namespace, serviceAccount: _account, ...fencing }: OwnNamespaceDeps,
  { collectionOf, pathOf, describe }: Names,
): Omit<OwnNamespace, keyof ReadOwnNamespace> {
  const perform = fencedWrites(fencing);
  return {
    namespace,
    apply: ({ metadata, ...object }: Workload) => {
      const { kind } = object;
      const value = { ...object, metadata: { ...metadata, namespace } };
      return perform(describe(kind, metadata.name), 'apply', async send =>
        objectIn(await send(applyRequest(pathOf(kind, metadata.name), value))),
      );
    },
    get: (kind, name) =>
      perform(describe(kind, name), 'get', async send => {
        try {
          return objectIn(await send({ verb: 'get', path: pathOf(kind, name) }));
        } catch (failure) {
          if (failedWith(failure, 'NotFound')) return undefined;
          throw failure;
        }
      }),
    createSecret: ({ data, ...metadata }) =>
      perform(describe('Secret', metadata.name), 'create', async send => {
        const type = { apiVersion: 'v1', kind: 'Secret' };
        const value = { ...type, metadata: { ...metadata, namespace }, data: encoded(data) };
        const body = { type: 'application/json', value };
        await send({ verb: 'create', path: collectionOf('Secret'), query, body });
      }),
    changeSecret: (name, resourceVersion, { data = {}, annotations = {} }) =>
      perform(describe('Secret', name), 'patch', async send => {
        const value = { metadata: { resourceVersion, annotations }, data: encoded(data) };
        const body = { type: 'application/merge-patch+json', value };
        try {
          await send({ verb: 'patch', path: pathOf('Secret', name), query, body });
        } catch (failure) {
          throw failedWith(failure, 'NotFound') ? goneError(describe('Secret', name)) : failure;
        }
      }),
    remove: (kind, name, uid) =>
      perform(describe(kind, name), 'delete', async send => {
        try {
          await send(deleteRequest(pathOf(kind, name), uid));
        } catch (failure) {
          // A conflict means that the object of this name has another uid.
          if (!failedWith(failure, 'NotFound', 'Conflict')) throw failure;
        }
      }),
  };
}

const query = { fieldManager: FIELD_MANAGER };

const TOKEN_SECONDS = 600;

function tokenRequest(path: string, audience: string): KubeRequest {
  const value = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [audience], expirationSeconds: TOKEN_SECONDS },
  };
  return { verb: 'create', path, body: { type: 'application/json', value } };
}

function objectIn(response: unknown): Fields {
  const object = fieldsOf(response);
  if (!object) throw new KubeError('Garbled', 'the response is not an object');
  return object;
}

function dataOf(object: Fields, decode: (text: string) => string): OwnData {
  const version = textIn(fieldsOf(object['metadata']), 'resourceVersion');
  const data = Object.entries(textsOf(object['data'])).map(([key, text]) => [key, decode(text)] as const);
  return { version: version === '' ? undefined : version, data: Object.fromEntries(data) };
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  const fields = fieldsOf(value);
  return Object.fromEntries(Object.keys(fields ?? {}).map(key => [key, textIn(fields, key)]));
}

function decoded(text: string): string {
  return Buffer.from(text, 'base64').toString();
}

/** Null removes an entry. */
function encoded(data: Readonly<Record<string, string | null>>): Readonly<Record<string, string | null>> {
  const encode = (text: string | null) => (text === null ? null : Buffer.from(text).toString('base64'));
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, encode(text)]));
}

function readError(what: string, error: unknown): unknown {
  if (!(error instanceof KubeError)) return error;
  const reason = error.reason === 'Forbidden' ? 'Refused' : 'Unavailable';
  return new ResourceError(reason, `${what}: ${error.message}`, { cause: error });
}
