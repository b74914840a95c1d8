import { PORTS } from '../src/api/names.ts';
import type { Component } from '../src/api/names.ts';
import type { Installation } from './generated/types.ts';
import { extensionServerAddress, proxyNamespacesOf } from './installation.ts';
import type { Install } from './installation.ts';
import { meshPodEnvironment } from './mesh-pods.ts';

type Variables = Readonly<Record<string, string>>;

/** The fields of the pod that a process gets as variables. */
export const POD_FIELDS: Variables = { POD_NAMESPACE: 'metadata.namespace', POD_NAME: 'metadata.name' };

/** The environment variables of a process, without those of `extraEnv`. */
export function environmentOf(install: Install, component: Component): Variables {
  const own = component === 'operator' ? operatorEnvironment(install) : extensionServerEnvironment(install);
  return { ...sharedEnvironment(install), ...own };
}

/** The names of `extraEnv` that a process has already: the API server would refuse a variable that is there twice. */
export function repeatedVariables(installation: Installation): readonly string[] {
  return (['operator', 'extensionServer'] as const).flatMap(process => {
    const own = { ...POD_FIELDS, ...environmentOf({ installation, version: '' }, process) };
    return Object.keys(installation[process].extraEnv ?? {})
      .filter(name => Object.hasOwn(own, name))
      .map(
        name =>
          `${process}.extraEnv: ${name} is set by mesh-gateway itself: remove it here, and set the field that it is for`,
      );
  });
}

/** What both processes must share, since both compute the clusters of a Gateway. */
function sharedEnvironment(install: Install): Variables {
  const { dataPath, externalTargets, refusedAddresses } = install.installation;
  return {
    DATA_PATH: dataPath,
    ...(externalTargets.allow ? { EXTERNAL_TARGETS_ALLOW: externalTargets.allow.join() } : {}),
    ...(refusedAddresses ? { REFUSED_ADDRESSES: refusedAddresses.join() } : {}),
    EXTENSION_SERVER_ADDRESS: extensionServerAddress(install),
    METRICS_ADDRESS: `:${PORTS.metrics}`,
    HEALTH_ADDRESS: `:${PORTS.health}`,
  };
}

function operatorEnvironment(install: Install): Variables {
  const { operator, image, networkPolicies } = install.installation;
  const { pullSecrets } = image;
  return {
    LOG_LEVEL: operator.logLevel,
    PPROF: operator.pprof ? 'on' : 'off',
    CONTROLLER_MAX_CONCURRENT_RECONCILES: String(operator.maxConcurrentReconciles),
    SYNC_PERIOD: operator.syncPeriod,
    PROXY_NAMESPACES: proxyNamespacesOf(install).join(),
    HEALTH_CHECK_CONCURRENCY: String(operator.healthCheckConcurrency),
    MAX_VIP_SERVICES: String(operator.maxVipServices),
    ...(operator.endpointMetricLabels
      ? { ENDPOINT_METRIC_LABELS: operator.endpointMetricLabels.join() }
      : {}),
    ...meshPodEnvironment(install.installation),
    NETWORK_POLICIES: networkPolicies.enabled ? 'on' : 'off',
    ...(pullSecrets ? { IMAGE_PULL_SECRETS: pullSecrets.join() } : {}),
  };
}

function extensionServerEnvironment({ installation: { extensionServer } }: Install): Variables {
  return {
    LOG_LEVEL: extensionServer.logLevel,
    PPROF: extensionServer.pprof ? 'on' : 'off',
    GRPC_ADDRESS: `:${PORTS.grpc}`,
    MAX_MESSAGE_SIZE: extensionServer.maxMessageSize,
    GRPC_KEEPALIVE_TIME: extensionServer.keepaliveTime,
    // Buffers of 60 KB for each new stream of an Envoy would otherwise stay in the heap.
    MALLOC_MMAP_THRESHOLD_: '32768',
  };
}
