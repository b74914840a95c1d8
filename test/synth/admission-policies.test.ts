import { describe, expect, it } from 'vitest';
import { GROUP } from '../../src/api/generated/kinds.ts';
import { listAt } from '../support/synth/parts.ts';
import { objectOf, objectsIn, synthesized } from '../support/synth/synthesized.ts';

describe('the admission policy of the status of MeshEndpoints', () => {
  const ofNamespace = (namespace: string) => objectsIn(synthesized({ namespace }));
  const objects = ofNamespace('mesh-system');
  const name = 'mesh-endpoints-status.mesh-system';
  const status = 'meshendpoints/status';

  it('is bound to every write of a status, and denies it where the policy cannot be evaluated', () => {
    const policy = objectOf(objects, 'ValidatingAdmissionPolicy', name);
    expect(policy['spec']).toMatchObject({
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [GROUP], apiVersions: ['*'], operations: ['UPDATE'], resources: [status] },
        ],
      },
    });
    expect(objectOf(objects, 'ValidatingAdmissionPolicyBinding', name)['spec']).toEqual({
      policyName: name,
      validationActions: ['Deny'],
    });
  });

  it('requires a right that the operator alone has, in the whole cluster', () => {
    const validations = listAt(objectOf(objects, 'ValidatingAdmissionPolicy', name), 'spec', 'validations');
    const expression = `authorizer.group('${GROUP}').resource('meshendpoints').subresource('status').check('report').allowed()`;
    expect(validations).toMatchObject([{ expression }]);
    const holders = objects.filter(object =>
      listAt(object, 'rules').some(rule => listAt(rule, 'verbs').includes('report')),
    );
    expect(holders.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
      ['ClusterRole', 'mesh-operator.mesh-system'],
    ]);
  });

  it('admits the operators of other installations, whose policies have other names', () => {
    const [policy, other] = [objects, ofNamespace('mesh-two')].map(all =>
      objectOf(all, 'ValidatingAdmissionPolicy'),
    );
    expect(other?.['spec']).toEqual(policy?.['spec']);
    expect(other?.metadata.name).toBe('mesh-endpoints-status.mesh-two');
  });
});
