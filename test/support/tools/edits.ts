import { condition, find, set, TAILNET_CONDITIONS } from './installation.ts';
import type { Installation, Json } from './installation.ts';

/** A MeshTailnet with a condition that is False. */
export const tailnetWith = (type: string, reason: string, message: string) => (all: Installation) => {
  const others = TAILNET_CONDITIONS.filter(each => each !== type);
  set(find(all.declared, 'example'), 'status.conditions', [
    ...others.map(each => condition(each, 'True', each)),
    condition(type, 'False', reason, message),
  ]);
};

/** Edits the configuration of Envoy Gateway. */
export const editConfig = (from: string | RegExp, to: string) => (all: Installation) => {
  const [config] = all.envoyGatewayConfig;
  const data = config?.['data'] as Record<string, string>;
  data['envoy-gateway.yaml'] = (data['envoy-gateway.yaml'] ?? '').replace(from, to);
};

/** An extension beside ours, in flow style. */
export const OTHER_EXTENSION =
  '{name: other, failOpen: true, service: {fqdn: {hostname: controller.ai.svc.cluster.local, port: 1063}}}';

/** The status of the container of a pod. */
export const status = (pod: Json) => ((pod['status'] as Json)['containerStatuses'] as Json[])[0] ?? {};

/** A crashing operator pod. */
export const crash = (all: Installation, reason: string) => {
  const found = status(find(all.pods, 'mesh-operator-1'));
  set(found, 'restartCount', 7);
  set(found, 'state', { waiting: { reason: 'CrashLoopBackOff' } });
  set(found, 'lastState', { terminated: { reason, message: 'hidden' } });
};

/** A role without the rule for a resource. */
export const withoutRule = (role: string, resource: string) => (all: Installation) => {
  const found = all.roles.find(
    each =>
      ['ClusterRole', 'Role'].includes(String(each['kind'])) && (each['metadata'] as Json)['name'] === role,
  );
  if (!found) throw new Error(`there is no role ${role}`);
  found['rules'] = (found['rules'] as Json[]).filter(
    rule => !(rule['resources'] as string[]).includes(resource),
  );
};

/** A NetworkPolicy that permits a port no more. */
export const withoutPort = (policy: string, port: number) => (all: Installation) => {
  const spec = find(all.policies, policy)['spec'] as Json;
  const rules = (spec['ingress'] as Json[]).map(rule => ({
    ...rule,
    ports: (rule['ports'] as Json[]).filter(each => each['port'] !== port),
  }));
  // Without ports a rule permits all.
  spec['ingress'] = rules.filter(({ ports }) => ports.length > 0);
};
