import type {
  OwnData,
  OwnNamespace,
  ReadOwnNamespace,
  Workload,
  WorkloadKind,
} from '../store/own-namespace.ts';
import type { ReadReferenced } from '../store/referenced.ts';
import { pathOfAll } from './served-kinds.ts';
import { goneError, requestError } from './write/errors.ts';
import { fencedWrites } from './write/fenced.ts';
import type { FencedDeps } from './write/fenced.ts';
import { apply, deleteRequest, failedWith, FIELD_MANAGER, getExisting } from './write/requests.ts';
import { KubeError } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import type { Fields } from '../api/json.ts';

import type { KubeRequest } from './transport/transport.ts';

/** How a namespace is read and written. */
export type OwnNamespaceDeps = FencedDeps & {
  readonly namespace: string;
  /** The ServiceAccount of the operator. */
  readonly serviceAccount: string;
};

type Kind = WorkloadKind | 'Pod';

/** All are namespaced kinds in v1. */
const KINDS: Readonly<Record<Kind, readonly [group: string, plural: string]>> = {
  ConfigMap: ['', 'configmaps'],
  Pod: ['', 'pods'],
  PodDisruptionBudget: ['policy', 'poddisruptionbudgets'],
  Role: ['rbac.authorization.k8s.io', 'roles'],
  RoleBinding: ['rbac.authorization.k8s.io', 'rolebindings'],
  Secret: ['', 'secrets'],
  Service: ['', 'services'],
  ServiceAccount: ['', 'serviceaccounts'],
  StatefulSet: ['apps', 'statefulsets'],
};

/** The operator's namespace in a cluster; it needs a Role there with the verbs of its requests. */
export function kubernetesNamespace(deps: OwnNamespaceDeps): OwnNamespace {
  const names = namesIn(deps.namespace);
  return { ...readNamespace(deps, names), ...changeNamespace(deps, names) };
}

/** Reads the objects of any namespace; it needs the verb get there. */
export function kubernetesReferenced(transport: OwnNamespaceDeps['transport']): ReadReferenced {
  const readIn = (namespace: string) =>
    readNamespace({ transport, namespace, serviceAccount: '' }, namesIn(namespace));
  return {
    configMap: (namespace, name) => readIn(namespace).configMap(name),
    secret: (namespace, name) => readIn(namespace).secret(name),
  };
}

type Names = ReturnType<typeof namesIn>;

/** The paths of objects in a namespace, and their names for errors. */
function namesIn(namespace: string) {
  const collectionOf = (kind: Kind) => {
    const [group, plural] = KINDS[kind];
    return pathOfAll({ group, plural, isNamespaced: true }, 'v1', namespace);
  };
  return {
    collectionOf,
    pathOf: (kind: Kind, name: string) => `${collectionOf(kind)}/${encodeURIComponent(name)}`,
    describe: (kind: Kind, name: string) => `${kind} ${namespace}/${name}`,
  };
}

function readNamespace(
  {
    transport,
    namespace,
    serviceAccount,
  }: Pick<OwnNamespaceDeps, 'transport' | 'namespace' | 'serviceAccount'>,
  { pathOf, describe }: Names,
): ReadOwnNamespace {
  const read = async (kind: Kind, name: string): Promise<Fields | undefined> => {
    try {
      return fieldsOf(await getExisting(request => transport.send(request), pathOf(kind, name)));
    } catch (failure) {
      throw requestError(describe(kind, name), failure);
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
      } catch (failure) {
        throw requestError(describe('ServiceAccount', serviceAccount), failure);
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
      return perform(describe(kind, metadata.name), 'apply', async send => {
        objectIn(await apply(send, pathOf(kind, metadata.name), value));
      });
    },
    get: (kind, name) =>
      perform(describe(kind, name), 'get', async send => {
        const response = await getExisting(send, pathOf(kind, name));
        return response === undefined ? undefined : objectIn(response);
      }),
    createSecret: ({ data, ...metadata }) =>
      perform(describe('Secret', metadata.name), 'create', async send => {
        const type = { apiVersion: 'v1', kind: 'Secret' };
        const value = { ...type, metadata: { ...metadata, namespace }, data: encoded(data) };
        const body = { type: 'application/json', value };
        await send({ verb: 'create', path: collectionOf('Secret'), query: FIELD_MANAGER, body });
      }),
    changeSecret: (name, resourceVersion, { data = {}, annotations = {} }) =>
      perform(describe('Secret', name), 'patch', async send => {
        const value = { metadata: { resourceVersion, annotations }, data: encoded(data) };
        const body = { type: 'application/merge-patch+json', value };
        try {
          await send({ verb: 'patch', path: pathOf('Secret', name), query: FIELD_MANAGER, body });
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
  if (!object) throw new KubeError('Malformed', 'the response is not an object');
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
