import { k8s } from 'cdk8s-plus-28';
import { Yaml } from 'cdk8s';
import type { Construct } from 'constructs';
import { envoyGatewayAccess, extensionManager } from '../../src/api/envoy-gateway.ts';
import { extensionServerAddress, labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';
import { addClusterAccess } from './rbac.ts';

/** Access that Envoy Gateway needs beside that of its own chart; without it, it does not become ready. */
export function addEnvoyGatewayAccess(chart: Construct, install: Install): void {
  const { namespace, serviceAccount } = install.installation.envoyGateway;
  addClusterAccess(chart, install, {
    name: 'mesh-envoy-gateway',
    labels: { ...labelsOf(install) },
    rules: envoyGatewayAccess,
    account: { name: serviceAccount, namespace },
  });
}

function extensionOf(install: Install): object {
  const { maxMessageSize } = install.installation.extensionServer;
  return extensionManager({ address: extensionServerAddress(install), maxMessageSize });
}

/** Values for Envoy Gateway's Helm chart. */
export function envoyGatewayValues(install: Install): string {
  return Yaml.stringify({ config: { envoyGateway: { extensionManager: extensionOf(install) } } });
}

/** The same without Helm: to be merged into Envoy Gateway's ConfigMap, so it has another name. */
export function addEnvoyGatewayConfig(chart: Construct, install: Install): void {
  new k8s.KubeConfigMap(chart, 'config', {
    metadata: {
      name: 'mesh-extension-manager',
      namespace: install.installation.envoyGateway.namespace,
      labels: { ...labelsOf(install) },
    },
    data: { 'envoy-gateway.yaml': Yaml.stringify({ extensionManager: extensionOf(install) }) },
  });
}
