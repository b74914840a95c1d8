import type { Kinds } from '../../../../src/api/generated/types.ts';
import { named } from '../../declared.ts';
import { meshBinding } from '../../objects.ts';
import type { EndpointsScene } from './scene.ts';

const GATEWAY = 'Gateway/default/public';

/** The operator writes the MeshBinding of Gateway public, with its present revision. */
export async function bind(scene: EndpointsScene, attempt = 0): Promise<void> {
  const { revisions, translations } = scene.values;
  const present = revisions.read(GATEWAY);
  if (!present) throw new Error('no route of the Gateway has MeshEndpoints');
  translations.note(GATEWAY, present);
  const revision = present.hash;
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' }];
  await scene.put(named(meshBinding({ targetRefs, revision, attempt }), 'default/public'));
}

/** The MeshBinding of Gateway public. */
export function bindingIn(scene: EndpointsScene): Kinds['MeshBinding'] {
  const { read } = scene.runtime.memory;
  const binding = read.get({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
  if (!binding) throw new Error('there is no MeshBinding');
  return binding;
}

/** Envoy Gateway reports that it has accepted the MeshBinding, as it is now or was before. */
export async function accept(
  scene: EndpointsScene,
  status: 'True' | 'False' = 'True',
  reported = bindingIn(scene),
): Promise<void> {
  const { generation: observedGeneration = 0 } = reported.metadata;
  const condition = {
    type: 'Accepted',
    status,
    reason: 'Accepted',
    message: '',
    observedGeneration,
    lastTransitionTime: '2026-01-15T12:00:00Z',
  };
  const ancestors = [
    { ancestorRef: { name: 'public' }, controllerName: 'example.com/gateway', conditions: [condition] },
  ];
  const { write } = scene.runtime.memory;
  await write.replaceStatus<Kinds['MeshBinding']>(bindingIn(scene), { ancestors });
  await scene.runtime.clock.settle();
}
