import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import { GROUP, kinds } from '../../src/api/generated/kinds.ts';
import { REPORT } from '../../src/api/names.ts';
import { clusterName, labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';

const ADMISSION = 'admissionregistration.k8s.io/v1';
const NAME = 'mesh-endpoints-status';

/**
 * Who may write the status of MeshEndpoints, beyond RBAC. The policy requires a right rather than an account: operators of
 * other installations have it too, and so have cluster-admins. It is checked for the whole cluster, so no Role grants it.
 */
export function addAdmissionPolicies(chart: Construct, install: Install): void {
  const metadata = { name: clusterName(install, NAME), labels: labelsOf(install) };
  const { plural } = kinds.MeshEndpoints;
  const resource = `${plural}/status`;
  new ApiObject(chart, NAME, {
    apiVersion: ADMISSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata,
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [GROUP], apiVersions: ['*'], operations: ['UPDATE'], resources: [resource] },
        ],
      },
      validations: [
        {
          expression: `authorizer.group('${GROUP}').resource('${plural}').subresource('status').check('${REPORT}').allowed()`,
          reason: 'Forbidden',
          message:
            `only the operator may write ${resource}: to allow another account, bind it by a ClusterRoleBinding ` +
            `to a ClusterRole with the verb ${REPORT} on ${resource} of ${GROUP}`,
        },
      ],
    },
  });
  new ApiObject(chart, `${NAME}-binding`, {
    apiVersion: ADMISSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata,
    spec: { policyName: metadata.name, validationActions: ['Deny'] },
  });
}
