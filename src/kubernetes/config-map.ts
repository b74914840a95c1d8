import type { restClientMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { restConfigSource } from './auth/config-source.ts';
import { createCollectionWatch } from './reflector/collection-watch.ts';
import type { WatchDeps } from './reflector/collection-watch.ts';
import type { Updates } from './reflector/reflector.ts';
import type { Collection } from './served-kinds.ts';
import { openTransport } from './transport/open-transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';

/** One ConfigMap of a cluster. */
export type ConfigMapOptions = WatchDeps & {
  readonly namespace: string;
  readonly name: string;
  /** The setting KUBECONFIG; empty in a pod. */
  readonly kubeconfig: string;
  /** The environment variables of the process, in which Kubernetes gives a pod the address of its API server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The time of day. */
  readonly now: () => Date;
  readonly telemetry: { readonly metrics: { readonly record: Recorder<typeof restClientMetrics> } };
  /** Called with its data when it has been read, and at each event. */
  readonly onData: (data: Readonly<Record<string, string>>) => void;
  /** Called where it does not exist, perhaps more than once. */
  readonly onMissing: () => void;
};

/** A watch of one ConfigMap. */
export type ConfigMapWatch = {
  readonly start: () => void;
  /** Resolves when no request is open. */
  readonly close: () => Promise<void>;
};

/** A ConfigMap has at most 1 MiB, which is larger as JSON. */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Opens a watch of one ConfigMap; nothing is sent before it is started. It needs the verbs list and watch on this name alone,
 * and keeps nothing in memory. Fails with SettingError.
 */
export async function watchConfigMap(options: ConfigMapOptions): Promise<ConfigMapWatch> {
  const { namespace, name, clock, now, telemetry } = options;
  const transport = openTransport({
    configSource: await restConfigSource(options),
    clock,
    now,
    record: telemetry.metrics.record,
    limits: { bodyBytes: MAX_BYTES, lineBytes: MAX_BYTES },
  });
  const collection: Collection = {
    kind: 'ConfigMap',
    served: { group: '', versions: ['v1'], plural: 'configmaps', isNamespaced: true },
    namespace,
    selection: { fieldSelector: `metadata.name=${name}` },
  };
  const watch = createCollectionWatch({ ...options, collection, transport, updates: updatesOf(options) });
  const close = async () => {
    await watch.close();
    await transport.close();
  };
  return { start: () => watch.start(), close };
}

function updatesOf({ name, onData, onMissing }: ConfigMapOptions): Updates {
  let isListed = false;
  const put = (object: unknown) => {
    const fields = fieldsOf(object);
    if (textIn(fieldsOf(fields?.['metadata']), 'name') !== name) return;
    isListed = true;
    const data = Object.entries(fieldsOf(fields?.['data']) ?? {});
    onData(
      Object.fromEntries(data.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
    );
  };
  return {
    beginList: () => {
      isListed = false;
    },
    addListed: put,
    endList: () => {
      if (!isListed) onMissing();
    },
    applyWatchEvent: (object, change) => (change === 'put' ? put(object) : onMissing()),
    noteVersion: () => undefined,
    removeAll: onMissing,
  };
}
