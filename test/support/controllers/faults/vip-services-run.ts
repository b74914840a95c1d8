import { createState } from '../../../../lab/control-api/state.ts';
import type { State } from '../../../../lab/control-api/state.ts';
import { ControlError } from '../../../../src/control/control.ts';
import type { ControlApi } from '../../../../src/control/control.ts';
import type { ServicesOfTailnet } from '../../../../src/controllers/mesh-endpoints/vip-services.ts';
import { meshGatewayController } from '../../../../src/controllers/mesh-gateway/controller.ts';
import { vipServicesController } from '../../../../src/controllers/vip-services/controller.ts';
import { sweeper } from '../../../../src/controllers/vip-services/sweep.ts';
import { createPublished } from '../../../../src/runtime/published.ts';
import { sharedIndexes } from '../../../../src/store/indexes.ts';
import { ResourceError } from '../../../../src/store/resources.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../../src/store/traffic/values.ts';
import { vipServiceMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import { named } from '../../declared.ts';
import { meshTailnet } from '../../objects.ts';
import { TRAFFIC } from '../mesh-endpoints/scene.ts';
import { MemoryNamespace } from '../mesh-tailnet/namespace.ts';
import { withoutMeshPods } from '../vip-services/scene.ts';
import { servicesApiOn } from '../vip-services/services-api.ts';
import { ClusterRun } from './cluster-run.ts';
import type { ProcessDeps } from './cluster-run.ts';
import type { Run } from './runs.ts';

const { record } = createRegistry({ metrics: vipServiceMetrics, version: 'test' });

/** The MeshTailnet, whose credentials are accepted. */
function authenticatedTailnet(): object {
  const condition = { type: 'Authenticated', status: 'True', reason: 'Authenticated', message: '' };
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-15T12:00:00Z' }];
  return { ...named(meshTailnet(), 'example'), status: { conditions } };
}

/** Which controllers run; with that of MeshGateways there are cleanups. */
type Controllers = 'of VIP services' | 'of VIP services and MeshGateways';

/** The controller of VIP services with a simulated control API, whose calls may be disturbed, too. */
export class VipServicesRun extends ClusterRun {
  readonly state: State;

  private constructor(state: State, run: Run, controllers: Controllers) {
    let states: ServicesOfTailnet | undefined;
    const namespace = new MemoryNamespace();
    const process = (deps: ProcessDeps): undefined => {
      const vipServices = createPublished<ServicesOfTailnet>();
      vipServices.subscribe(name => {
        states = vipServices.of(name);
      });
      startOn(state, deps, { vipServices, controllers, namespace });
    };
    const objects = [named(meshTailnet(), 'example')];
    const outside = () => ({ services: state.services.all(), states });
    super({ indexes: [...trafficIndexes, ...sharedIndexes], objects, process, outside }, run);
    this.state = state;
  }

  static start(run: Run, controllers: Controllers = 'of VIP services'): VipServicesRun {
    const clock = { now: () => 0 };
    const domain = 'example.ts.net';
    const state = createState({ dialect: 'vendor', domain, behaviour: {}, clock, seed: 1, settings: {} });
    return new VipServicesRun(state, run, controllers);
  }

  /** From then on services are registered. */
  authenticate(): void {
    this.putWithStatus(authenticatedTailnet());
  }
}

type Options = {
  readonly vipServices: ReturnType<typeof createPublished<ServicesOfTailnet>>;
  readonly controllers: Controllers;
  readonly namespace: MemoryNamespace;
};

function startOn(
  state: State,
  { tracking, write, events, clock, now, log, counted, start }: ProcessDeps,
  { vipServices, controllers, namespace }: Options,
): void {
  const api = servicesApiOn(state, async (name, act) => {
    const port = counted({ [name]: () => Promise.resolve(act()) });
    try {
      return await (port[name]?.() ?? Promise.reject(new Error(name)));
    } catch (error) {
      if (!(error instanceof ResourceError)) throw error;
      throw new ControlError(error.reason === 'Refused' ? 'Invalid' : 'Unreachable', error.message);
    }
  });
  const view = { devices: [], expected: [], isStale: false, hasServices: true };
  const tailnets = { api: () => api as ControlApi, lastView: () => view as never };
  const values = trafficValues(tracking, TRAFFIC);
  const shared = { tailnets, tracking, write, now, record, installation: '0a1b2c3d' };
  start(
    vipServicesController({
      ...{ ...shared, vipServices, values, clock, log, random: () => 0 },
      ownNamespace: counted(namespace),
      maxVipServices: 1000,
      unserved: withoutMeshPods(vipServices),
      tailnets: { ...tailnets, subscribe: () => () => undefined },
    }),
  );
  if (controllers === 'of VIP services') return;
  start(meshGatewayController({ ...shared, values, events, clock, sweep: sweeper(shared) }));
}
