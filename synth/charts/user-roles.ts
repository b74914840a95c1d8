import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { GROUP, kinds } from '../../src/api/generated/kinds.ts';
import { clusterName, labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'patch', 'update', 'delete', 'deletecollection'];

/** What whoever has a role of Kubernetes for users may do with our kinds. */
const VERBS: Readonly<Record<string, readonly string[]>> = {
  admin: [...READ, ...WRITE],
  edit: [...READ, ...WRITE],
  view: READ,
};

/** The kinds that belong to users; a MeshTailnet is the platform's, and a MeshBinding the operator's. */
const OF_USERS = [kinds.MeshEndpoints.plural];

/**
 * A ClusterRole that nobody has: whoever owns a namespace binds it there to the operator, so that checks may send
 * headers out of Secrets of that namespace. The operator may read Secrets nowhere else.
 */
export function addSecretReader(chart: Construct, install: Install): void {
  const name = 'mesh-secret-reader';
  new k8s.KubeClusterRole(chart, name, {
    metadata: { name: clusterName(install, name), labels: { ...labelsOf(install) } },
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
  });
}

/** ClusterRoles that Kubernetes adds to its own admin, edit and view, so that users need no role of ours. */
export function addUserRoles(chart: Construct, install: Install): void {
  for (const [role, verbs] of Object.entries(VERBS)) {
    const name = `mesh-gateway-${role}`;
    new k8s.KubeClusterRole(chart, name, {
      metadata: {
        name: clusterName(install, name),
        labels: { ...labelsOf(install), [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' },
      },
      rules: [
        { apiGroups: [GROUP], resources: [...OF_USERS], verbs: [...verbs] },
        { apiGroups: [GROUP], resources: OF_USERS.map(plural => `${plural}/status`), verbs: ['get'] },
      ],
    });
  }
}
