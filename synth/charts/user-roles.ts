import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { GROUP, kinds } from '../../src/api/generated/kinds.ts';
import type { KindName } from '../../src/api/generated/kinds.ts';
import { SECRET_READER } from '../../src/api/names.ts';
import { clusterName, labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'patch', 'update', 'delete', 'deletecollection'];

/** The verbs that Kubernetes' user roles get on mesh-gateway's kinds. */
const VERBS: Readonly<Record<string, readonly string[]>> = {
  admin: [...READ, ...WRITE],
  edit: [...READ, ...WRITE],
  view: READ,
};

/** Who writes objects of each kind. */
const WRITERS: Readonly<Record<KindName, 'users' | 'platform team' | 'operator'>> = {
  MeshBinding: 'operator',
  MeshEndpoints: 'users',
  MeshGateway: 'users',
  MeshRoutePolicy: 'users',
  MeshTailnet: 'platform team',
};

const OF_USERS = Object.values(kinds)
  .filter(({ kind }) => WRITERS[kind] === 'users')
  .map(({ plural }) => plural);

/**
 * A ClusterRole without a binding: the owner of a namespace binds it there to the operator, so that checks may send headers
 * from Secrets of that namespace. The operator may read Secrets nowhere else.
 */
export function addSecretReader(chart: Construct, install: Install): void {
  const name = SECRET_READER;
  new k8s.KubeClusterRole(chart, name, {
    metadata: { name: clusterName(install, name), labels: { ...labelsOf(install) } },
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
  });
}

/** ClusterRoles that Kubernetes aggregates into its own admin, edit and view. */
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
