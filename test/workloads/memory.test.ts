import { API_VERSION } from '../../src/api/generated/kinds.ts';
import { createWorkloadMemory } from '../../src/workloads/memory.ts';
import { describeWorkloads } from '../contract/workloads.ts';
import type { Found } from '../contract/workloads.ts';

const namespace = 'mesh-system';

describeWorkloads('workloads in memory', unique => {
  const { workloads, others, get } = createWorkloadMemory();
  return Promise.resolve({
    workloads,
    namespace,
    unique,
    owner: name =>
      Promise.resolve({ apiVersion: API_VERSION, kind: 'MeshTailnet', name, uid: `uid-of-${name}` }),
    others: {
      create: object => others.create(object),
      change: (kind, name, change) => others.change({ kind, namespace, name }, change as Found),
    },
    look: (kind, name) => Promise.resolve(get({ kind, namespace, name }) as Found | undefined),
  });
});
