import { findCondition } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { ControlError } from '../../control/control.ts';
import type { ControlApi, Tailnets, VipService } from '../../control/control.ts';

export type ConnectionDeps = {
  readonly tailnets: Pick<Tailnets, 'api' | 'lastView'>;
  /** The id of this installation; undefined where it has none. */
  readonly installation: string | undefined;
};

/** The services of a tailnet as they were listed last. */
export type Listed = { readonly api: ControlApi; readonly services: readonly VipService[] };

/** The services of a tailnet, or why they cannot be read. */
export type Connection =
  | (Listed & { readonly is: 'usable'; readonly installation: string })
  /** The control server has no VIP services. */
  | { readonly is: 'without-services' }
  | { readonly is: 'unusable'; readonly problem: ProblemAt<'MeshEndpoints VIPServicesReady'> };

/** Lists the services of a tailnet unless they are known, where its credentials are those of this tailnet. */
export async function connectionOf(
  { metadata, status }: Kinds['MeshTailnet'],
  { tailnets, installation }: ConnectionDeps,
  known: Listed | undefined,
): Promise<Connection> {
  const { name } = metadata;
  const unusable = (problem: ProblemAt<'MeshEndpoints VIPServicesReady'>): Connection => ({
    is: 'unusable',
    problem,
  });
  if (installation === undefined) {
    const text = 'the operator cannot read Namespace kube-system, whose uid identifies the cluster';
    return unusable({ reason: 'NotIdentified', text });
  }
  const [api, view] = [tailnets.api(name), tailnets.lastView(name)];
  if (view?.hasServices === false) return { is: 'without-services' };
  const authenticated = findCondition(status?.conditions, 'Authenticated');
  if (!api || authenticated?.status !== 'True') {
    const fix = `see the condition Authenticated of MeshTailnet ${name}`;
    return unusable({ reason: 'NotAuthenticated', text: '', fix });
  }
  try {
    const services = known?.api === api ? known.services : await api.services();
    return { is: 'usable', installation, api, services };
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    const { reason } = error;
    if (reason === 'NotSupported') return { is: 'without-services' };
    if (reason === 'ScopeMissing' || reason === 'NotFound') {
      const text = `the credentials of MeshTailnet ${name} need the scope services, or the tailnet has no VIP services`;
      return unusable({ reason: 'ScopeMissing', text });
    }
    // Without its words, which may differ each time.
    const text = `the services of MeshTailnet ${name} could not be listed, so they are as they were`;
    return unusable({ reason, text });
  }
}
