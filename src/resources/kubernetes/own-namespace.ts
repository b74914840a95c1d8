import type { OwnData, ReadOwnNamespace } from '../own-namespace.ts';
import { ResourceError } from '../resources.ts';
import { KubeError } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import type { KubeRequest, KubeTransport } from './transport/transport.ts';

/** How a namespace is read. */
export type OwnNamespaceDeps = {
  readonly transport: Pick<KubeTransport, 'send'>;
  readonly namespace: string;
  /** The ServiceAccount of the operator. */
  readonly serviceAccount: string;
};

const TOKEN_SECONDS = 600;

/** Reads a namespace of a cluster; it needs the rights to get Secrets and ConfigMaps there and to create tokens. */
export function kubernetesNamespace({
  transport,
  namespace,
  serviceAccount,
}: OwnNamespaceDeps): ReadOwnNamespace {
  const root = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const get = async (what: string, path: string): Promise<unknown> => {
    try {
      return await transport.send({ verb: 'get', path });
    } catch (error) {
      if (error instanceof KubeError && error.reason === 'NotFound') return undefined;
      throw resourceError(what, error);
    }
  };
  return {
    place: `namespace ${namespace}`,
    secret: async name => {
      const object = fieldsOf(
        await get(`Secret ${namespace}/${name}`, `${root}/secrets/${encodeURIComponent(name)}`),
      );
      return object && dataOf(object, text => Buffer.from(text, 'base64').toString());
    },
    configMap: async name => {
      const path = `${root}/configmaps/${encodeURIComponent(name)}`;
      const object = fieldsOf(await get(`ConfigMap ${namespace}/${name}`, path));
      return object && dataOf(object, text => text);
    },
    serviceAccountToken: async audience => {
      const what = `ServiceAccount ${namespace}/${serviceAccount}`;
      try {
        const answer = await transport.send(
          tokenRequest(`${root}/serviceaccounts/${serviceAccount}/token`, audience),
        );
        return textIn(fieldsOf(fieldsOf(answer)?.['status']), 'token');
      } catch (error) {
        throw resourceError(what, error);
      }
    },
  };
}

function tokenRequest(path: string, audience: string): KubeRequest {
  const value = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [audience], expirationSeconds: TOKEN_SECONDS },
  };
  return { verb: 'create', path, body: { type: 'application/json', value } };
}

function dataOf(object: Readonly<Record<string, unknown>>, decode: (text: string) => string): OwnData {
  const entries = Object.entries(fieldsOf(object['data']) ?? {}).map(
    ([key, value]) => [key, decode(typeof value === 'string' ? value : '')] as const,
  );
  const version = textIn(fieldsOf(object['metadata']), 'resourceVersion');
  return { version: version === '' ? undefined : version, data: Object.fromEntries(entries) };
}

function resourceError(what: string, error: unknown): unknown {
  if (!(error instanceof KubeError)) return error;
  const reason = error.reason === 'Forbidden' ? 'Refused' : 'Unavailable';
  return new ResourceError(reason, `${what}: ${error.message}`, { cause: error });
}
