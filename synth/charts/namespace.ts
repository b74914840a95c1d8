import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';

/** The namespace of all pods, which enforces the restricted level of Pod Security. */
export function addNamespace(chart: Construct, install: Install): void {
  const levels = ['enforce', 'audit', 'warn'].map(
    mode => [`pod-security.kubernetes.io/${mode}`, 'restricted'] as const,
  );
  new k8s.KubeNamespace(chart, 'namespace', {
    metadata: {
      name: install.installation.namespace,
      labels: { ...labelsOf(install), ...Object.fromEntries(levels) },
    },
  });
}
