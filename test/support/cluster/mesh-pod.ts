import type { KubeObject } from '../../../lab/kube/object.ts';
import { restrictedPod } from './objects.ts';

const RBAC = 'rbac.authorization.k8s.io';

/** What a mesh pod joins with: the control server, and a key that is put into its Secret. */
export type MeshPodOptions = {
  readonly namespace: string;
  readonly name: string;
  readonly loginServer: string;
  readonly key: string;
};

/** A mesh pod as users run it: its image's own program, without any privilege, its state and its key in its Secret. */
export function meshPod({ namespace, name, loginServer, key }: MeshPodOptions): readonly KubeObject[] {
  const metadata = { namespace, name };
  const role = { apiGroup: RBAC, kind: 'Role', name };
  const rules = [
    { apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['get', 'patch', 'update'] },
  ];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata, rules },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: role,
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
    { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { authkey: key } },
    restrictedPod(namespace, name, container(name, loginServer), {
      serviceAccountName: name,
      volumes: WRITABLE.map(folder => ({ name: volumeName(folder), emptyDir: {} })),
    }),
  ];
}

const WRITABLE = ['/tmp', '/var/run/tailscale'];

function volumeName(folder: string): string {
  return folder.slice(1).replaceAll('/', '-');
}

function container(name: string, loginServer: string) {
  const variables = {
    POD_NAME: name,
    TS_KUBE_SECRET: name,
    TS_AUTH_ONCE: 'true',
    TS_USERSPACE: 'true',
    TS_ACCEPT_DNS: 'false',
    TS_HOSTNAME: name,
    TS_EXTRA_ARGS: `--login-server=${loginServer}`,
    TS_OUTBOUND_HTTP_PROXY_LISTEN: ':1055',
    TS_SOCKS5_SERVER: ':1055',
    TS_LOCAL_ADDR_PORT: '[::]:9002',
    TS_ENABLE_HEALTH_CHECK: 'true',
    TS_NO_LOGS_NO_SUPPORT: 'true',
  };
  return {
    image: 'tailscale',
    env: Object.entries(variables).map(([variable, value]) => ({ name: variable, value })),
    readinessProbe: { httpGet: { path: '/healthz', port: 9002 }, periodSeconds: 1 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: WRITABLE.map(folder => ({ name: volumeName(folder), mountPath: folder })),
  } as const;
}
