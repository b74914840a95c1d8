import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import type { AccessRule, ProcessAccess } from '../../src/api/access.ts';
import { COMPONENTS } from '../../src/api/names.ts';
import type { Component } from '../../src/api/names.ts';
import { operatorAccess } from '../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../src/traffic/access.ts';
import { clusterName, labelsOf, proxyNamespacesOf } from '../installation.ts';
import type { Install } from '../installation.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** The ServiceAccount of each process, with the roles that its code declares. */
export function addRbac(chart: Construct, install: Install): void {
  addProcess(chart, install, 'operator', operatorAccess);
  addProcess(chart, install, 'extensionServer', extensionServerAccess);
  const operator = { name: COMPONENTS.operator, labels: { ...labelsOf(install, 'operator') } };
  for (const namespace of proxyNamespacesOf(install))
    addAccessIn(chart, install, { ...operator, rules: operatorAccess.proxies, namespace });
}

function addProcess(chart: Construct, install: Install, component: Component, access: ProcessAccess): void {
  const name = COMPONENTS[component];
  const labels = { ...labelsOf(install, component) };
  new k8s.KubeServiceAccount(chart, name, {
    metadata: { name, labels },
    // Pods that need the token mount it themselves.
    automountServiceAccountToken: false,
  });
  addClusterAccess(chart, install, { name, labels, rules: access.cluster, account: { name } });
  if (install.installation.rbac.unusedRights) {
    const unused = { name: `${name}-unused`, labels, rules: access.unused };
    addClusterAccess(chart, install, { ...unused, account: { name } });
  }
  if (access.own.length > 0) addAccessIn(chart, install, { name, labels, rules: access.own });
}

type Grant = {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly rules: readonly AccessRule[];
};

/** A ClusterRole and its binding to a ServiceAccount, in the namespace of the installation if none is given. */
export function addClusterAccess(
  chart: Construct,
  install: Install,
  {
    name,
    labels,
    rules,
    account,
  }: Grant & { readonly account: { readonly name: string; readonly namespace?: string } },
): void {
  const metadata = { name: clusterName(install, name), labels };
  new k8s.KubeClusterRole(chart, `${name}-cluster-role`, { metadata, rules: rules.map(ruleOf) });
  new k8s.KubeClusterRoleBinding(chart, `${name}-cluster-role-binding`, {
    metadata,
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', namespace: install.installation.namespace, ...account }],
  });
}

/** A Role and its binding, in the namespace of the installation or in another one, which other installations may share. */
function addAccessIn(
  chart: Construct,
  install: Install,
  { name, labels, rules, namespace }: Grant & { readonly namespace?: string },
): void {
  const elsewhere = namespace === undefined ? {} : { name: clusterName(install, name), namespace };
  const metadata = { name, labels, ...elsewhere };
  const id = namespace === undefined ? name : `${name}-${namespace}`;
  new k8s.KubeRole(chart, `${id}-role`, { metadata, rules: rules.map(ruleOf) });
  new k8s.KubeRoleBinding(chart, `${id}-role-binding`, {
    metadata,
    roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: install.installation.namespace }],
  });
}

function ruleOf({ apiGroups, resources, resourceNames, verbs }: AccessRule): k8s.PolicyRule {
  return {
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames ? { resourceNames: [...resourceNames] } : {}),
    verbs: [...verbs],
  };
}
