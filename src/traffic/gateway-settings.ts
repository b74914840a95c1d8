import type { Kinds, MeshBindingSettings } from '../api/generated/types.ts';
import type { Key, Ref } from '../api/key.ts';
import { keyOf } from '../api/key.ts';
import { oldestOf } from '../api/objects/oldest.ts';

/** What a MeshGateway decides for a Gateway; the operator writes it into the Gateway's MeshBinding. */
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

/**
 * The settings for a route on an Envoy that serves several of its Gateways, as merged Gateways: those that are the oldest
 * count. So no Gateway decides about the routes of others that share its Envoy.
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
  return oldestOf(claims)?.settings;
}
