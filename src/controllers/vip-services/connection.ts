import { findCondition } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { ControlError } from '../../control/control.ts';
import type { ControlApi, Tailnets, VipService } from '../../control/control.ts';
import type { ServicesOfTailnet } from '../mesh-endpoints/vip-services.ts';

export type ConnectionDeps = {
  readonly tailnets: Pick<Tailnets, 'api' | 'lastView'>;
  /** The id of this installation; undefined where it has none. */
  readonly installation: string | undefined;
};

/** The services of a tailnet, or why they cannot be read. */
export type Connection =
  | {
      readonly is: 'usable';
      readonly installation: string;
      readonly api: ControlApi;
      readonly services: readonly VipService[];
    }
  /** The control server has no VIP services. */
  | { readonly is: 'without-services' }
  | { readonly is: 'unusable'; readonly problem: NonNullable<ServicesOfTailnet['problem']> };

/** Lists the services of a tailnet, where its credentials are those of this tailnet. */
export async function connectionOf(
  { metadata, status }: Kinds['MeshTailnet'],
  { tailnets, installation }: ConnectionDeps,
): Promise<Connection> {
  const { name } = metadata;
  const unusable = (reason: string, message: string): Connection => ({
    is: 'unusable',
    problem: { reason, message },
  });
  if (installation === undefined) {
    return unusable(
      'NotIdentified',
      'the operator cannot read Namespace kube-system, whose uid identifies the cluster',
    );
  }
  const [api, view] = [tailnets.api(name), tailnets.lastView(name)];
  if (view?.hasServices === false) return { is: 'without-services' };
  const authenticated = findCondition(status?.conditions, 'Authenticated');
  if (!api || authenticated?.status !== 'True') {
    return unusable('NotAuthenticated', `see the condition Authenticated of MeshTailnet ${name}`);
  }
  try {
    return { is: 'usable', installation, api, services: await api.services() };
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    const { reason } = error;
    if (reason === 'NotSupported') return { is: 'without-services' };
    if (reason === 'ScopeMissing' || reason === 'NotFound') {
      const message = `the credentials of MeshTailnet ${name} need the scope services, or the tailnet has no VIP services`;
      return unusable('ScopeMissing', message);
    }
    // Without its words, which may differ each time.
    return unusable(
      reason,
      `the services of MeshTailnet ${name} could not be listed, so they are as they were`,
    );
  }
}
