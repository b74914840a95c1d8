import { imageOf } from '../../../lab/cluster/images/table.ts';
import type { Image } from '../../../lab/cluster/images/table.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';

type Container = { readonly image: Image['name']; readonly [field: string]: unknown };

/** A pod of one container that Pod Security's level restricted admits. */
export function restrictedPod(
  namespace: string,
  name: string,
  { image, ...container }: Container,
  spec: Readonly<Record<string, unknown>> = {},
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels: { app: name } },
    spec: {
      terminationGracePeriodSeconds: 1,
      restartPolicy: 'Never',
      securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name,
          image: imageOf(image),
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          ...container,
        },
      ],
      ...spec,
    },
  };
}

/** The HTTP service of the lab in a pod, and the Service in front of it. */
export function webService(namespace: string, name: string): readonly KubeObject[] {
  const args = ['--name', name, '--host', '0.0.0.0', '--http-port', '8080', '--control', '127.0.0.1:9000'];
  const readinessProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1 };
  return [
    restrictedPod(namespace, name, { image: 'backends', args, readinessProbe }),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace, name },
      spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }] },
    },
  ];
}

/** A Gateway of Envoy Gateway with an HTTP listener. */
export function httpGateway(namespace: string, name: string): KubeObject {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { namespace, name },
    spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  };
}
