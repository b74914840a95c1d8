import type { Kinds, MeshBindingSettings } from '../api/generated/types.ts';
import type { Key, Ref } from '../api/key.ts';
import { keyOf } from '../api/key.ts';
import { oldestOf } from '../api/objects/oldest.ts';

/** The settings of a Gateway; the operator writes them into its MeshBinding. */
export type GatewaySettings = MeshBindingSettings;

/** The keys of the Gateways that a MeshGateway or MeshBinding targets. */
export function targetsOf({
  metadata: { namespace = '' },
  spec,
}: Kinds['MeshGateway'] | Kinds['MeshBinding']): readonly Key[] {
  return spec.targetRefs.map(({ name }) => keyOf({ kind: 'Gateway', namespace, name }));
}

/** The settings of a Gateway by the MeshGateways that target it, of which the oldest decides; undefined without any. */
export function gatewaySettings(meshGateways: readonly Kinds['MeshGateway'][]): GatewaySettings | undefined {
  const oldest = oldestOf(meshGateways);
  if (!oldest) return undefined;
  const { metadata, spec } = oldest;
  const since = metadata.creationTimestamp;
  const { dataPath, healthChecks } = spec;
  return {
    ...(since !== undefined && { since }),
    ...(dataPath && { dataPath }),
    ...(healthChecks && { healthChecks }),
  };
}

/** These settings with the backends that the operator alone checks, unless a MeshGateway decides it for all of them. */
export function withOperatorChecks(
  settings: GatewaySettings | undefined,
  backends: () => GatewaySettings['checkedByOperator'],
): GatewaySettings | undefined {
  if ((settings?.healthChecks?.envoy ?? 'Auto') !== 'Auto') return settings;
  const checkedByOperator = backends();
  return checkedByOperator ? { ...settings, checkedByOperator } : settings;
}

/**
 * The settings for a route on an Envoy that serves several of its Gateways, as merged Gateways: those that are the oldest
 * count. So no Gateway decides about the routes of others that share its Envoy. A backend is checked by the operator alone if
 * it is for one of them.
 */
export function sharedSettings(
  gateways: readonly Ref<'Gateway'>[],
  settingsOf: (gateway: Ref<'Gateway'>) => GatewaySettings | undefined,
): GatewaySettings | undefined {
  const claims = gateways.flatMap(({ namespace, name }) => {
    const settings = settingsOf({ kind: 'Gateway', namespace, name });
    if (!settings) return [];
    const created = settings.since !== undefined && { creationTimestamp: settings.since };
    return [{ metadata: { namespace, name, ...created }, settings }];
  });
  const lists = claims.flatMap(({ settings }) =>
    settings.checkedByOperator ? [settings.checkedByOperator] : [],
  );
  return withOperatorChecks(oldestOf(claims)?.settings, () => (lists.length > 1 ? lists.flat() : lists[0]));
}
