import { COMPONENTS, MANAGED_BY, NETWORK_POLICY_REPORTS } from '../api/names.ts';
import type { ComponentPod, Replicas } from '../store/replicas.ts';
import { pathOfAll } from './served-kinds.ts';
import type { KubeTransport } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import { requestError } from './write/errors.ts';
import { failedWith, FIELD_MANAGER, getExisting } from './write/requests.ts';

export type ReplicasDeps = {
  readonly transport: Pick<KubeTransport, 'send'>;
  /** Of the installation. */
  readonly namespace: string;
};

const CONFIG_MAP = NETWORK_POLICY_REPORTS.configMap;

const COMPONENT_OF: Readonly<Record<string, ComponentPod['component']>> = {
  [COMPONENTS.operator]: 'operator',
  [COMPONENTS.extensionServer]: 'extensionServer',
};

const SELECTOR = `app.kubernetes.io/name in (${Object.values(COMPONENTS).join()})`;

/**
 * The replicas of an installation in a cluster. It needs the verb list on pods, and get, create and patch on ConfigMaps, in that
 * namespace. A merge patch changes the reports that it names alone, so that replicas need no leader for it.
 */
export function kubernetesReplicas({ transport, namespace }: ReplicasDeps): Replicas {
  const all = (plural: string) => pathOfAll({ group: '', plural, isNamespaced: true }, 'v1', namespace);
  const path = `${all('configmaps')}/${CONFIG_MAP}`;
  const what = `ConfigMap ${namespace}/${CONFIG_MAP}`;
  const patch = async (data: Readonly<Record<string, string | null>>) => {
    const body = { type: 'application/merge-patch+json', value: { data } };
    await transport.send({ verb: 'patch', path, query: FIELD_MANAGER, body });
  };
  const create = async (changes: Readonly<Record<string, string | null>>) => {
    const data = Object.fromEntries(Object.entries(changes).filter(([, text]) => text !== null));
    const metadata = { name: CONFIG_MAP, namespace, labels: MANAGED_BY };
    const value = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
    const body = { type: 'application/json', value };
    try {
      await transport.send({ verb: 'create', path: all('configmaps'), query: FIELD_MANAGER, body });
    } catch (failure) {
      // Another replica was first.
      if (!failedWith(failure, 'Conflict')) throw failure;
      await patch(changes);
    }
  };
  return {
    pods: async () => {
      try {
        const query = { labelSelector: SELECTOR };
        return podsIn(await transport.send({ verb: 'list', path: all('pods'), query }));
      } catch (failure) {
        throw requestError(`pods of namespace ${namespace}`, failure);
      }
    },
    reports: async () => {
      try {
        return textsOf(fieldsOf(await getExisting(request => transport.send(request), path))?.['data']);
      } catch (failure) {
        throw requestError(what, failure);
      }
    },
    report: async changes => {
      try {
        await patch(changes).catch((failure: unknown) => {
          if (failedWith(failure, 'NotFound')) return create(changes);
          throw failure;
        });
      } catch (failure) {
        throw requestError(what, failure);
      }
    },
  };
}

function podsIn(list: unknown): readonly ComponentPod[] {
  const items = fieldsOf(list)?.['items'];
  return Array.isArray(items) ? items.flatMap(podOf) : [];
}

function podOf(item: unknown): readonly ComponentPod[] {
  const [metadata, spec, status] = ['metadata', 'spec', 'status'].map(name =>
    fieldsOf(fieldsOf(item)?.[name]),
  );
  const component = COMPONENT_OF[textIn(fieldsOf(metadata?.['labels']), 'app.kubernetes.io/name')];
  if (component === undefined) return [];
  const conditions: unknown = status?.['conditions'];
  const ready = Array.isArray(conditions)
    ? conditions.map(fieldsOf).find(condition => textIn(condition, 'type') === 'Ready')
    : undefined;
  const address = spec?.['hostNetwork'] === true ? '' : textIn(status, 'podIP');
  return [
    {
      component,
      name: textIn(metadata, 'name'),
      uid: textIn(metadata, 'uid'),
      address: address === '' ? undefined : address,
      isReady: textIn(ready, 'status') === 'True' && metadata?.['deletionTimestamp'] === undefined,
    },
  ];
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(value) ?? {});
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
