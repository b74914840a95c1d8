import { watchAccess } from '../api/access.ts';
import type { Access, AccessRule, OperatorAccess } from '../api/access.ts';
import { isEqual } from '../api/json.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { keyOf } from '../api/key.ts';
import type { ResourceKind } from '../api/key.ts';
import { COMPONENTS } from '../api/names.ts';
import { refTo } from '../api/objects/references.ts';
import { access as anchorsAccess, anchorsController, reads as anchorsReads } from './anchors/controller.ts';
import type { AnchorsDeps } from './anchors/controller.ts';
import {
  access as bindingAccess,
  reads as bindingReads,
  bindingController,
} from './mesh-binding/controller.ts';
import type { BindingDeps } from './mesh-binding/controller.ts';
import { access as endpointsAccess, endpointsController } from './mesh-endpoints/controller.ts';
import type { EndpointsDeps } from './mesh-endpoints/controller.ts';
import {
  access as gatewayAccess,
  reads as gatewayReads,
  meshGatewayController,
} from './mesh-gateway/controller.ts';
import type { MeshGatewayDeps } from './mesh-gateway/controller.ts';
import { access as routePolicyAccess, meshRoutePolicyController } from './mesh-route-policy/controller.ts';
import type { MeshRoutePolicyDeps } from './mesh-route-policy/controller.ts';
import { eventAccess, leaseAccess, podAddressesAccess } from '../kubernetes/access.ts';
import { sharedIndexes } from '../store/indexes.ts';
import type { AnyIndex } from '../store/resources.ts';
import {
  access as tailnetAccess,
  reads as tailnetReads,
  tailnetController,
  tailnetIndexes,
} from './mesh-tailnet/controller.ts';
import type { TailnetDeps } from './mesh-tailnet/controller.ts';
import type { PolicyEnforcement } from './mesh-tailnet/enforcement/enforcement.ts';
import { access as trustAccess, reads as trustReads, trustController } from './mesh-trust/controller.ts';
import type { TrustDeps } from './mesh-trust/controller.ts';
import {
  access as relayPortsAccess,
  reads as relayPortsReads,
  relayPortsController,
} from './mesh-tailnet/relays/controller.ts';
import type { RelayPortsDeps } from './mesh-tailnet/relays/controller.ts';
import {
  access as vipServicesAccess,
  reads as vipServicesReads,
  vipServicesController,
} from './vip-services/controller.ts';
import type { VipServicesDeps } from './vip-services/controller.ts';
import { sweeper } from './vip-services/sweep.ts';
import { httpGet } from './mesh-tailnet/relays/relay-status.ts';
import { startController } from '../runtime/controller.ts';
import { inSlices } from '../runtime/slices.ts';
import { operatorTrafficKinds, routingKinds } from '../traffic/access.ts';
import type { ControllerDeps, ControllerOptions, RunningController } from '../runtime/controller.ts';

/** What the composition roots inject: the deps of every controller. */
type Deps = ControllerDeps &
  BindingDeps &
  EndpointsDeps &
  Omit<MeshGatewayDeps, 'sweep'> &
  MeshRoutePolicyDeps &
  Pick<RelayPortsDeps, 'values'> &
  Omit<TailnetDeps, 'log'> & {
    /** Undefined without a cluster. */
    readonly cluster: ClusterDeps | undefined;
  };

/** The deps of controllers that need a cluster. */
type ClusterDeps = Omit<TrustDeps, keyof ControllerDeps | 'log' | 'syncPeriodMs'> &
  Omit<AnchorsDeps, keyof ControllerDeps | 'values' | 'write'> &
  Omit<RelayPortsDeps, keyof ControllerDeps | 'values' | 'events' | 'httpGet' | 'log' | 'enforcement'> &
  Omit<VipServicesDeps, 'tailnets' | 'tracking' | 'values' | 'write' | 'clock' | 'now' | 'log'> & {
    /** Whether NetworkPolicies are enforced. */
    readonly enforcement: PolicyEnforcement;
  };

/** A controller, as the processes that start it and the manifests need it. */
type RegisteredController = {
  /** Its name in logs and metrics. */
  readonly name: string;
  /** The kinds that it reads, itself or through derived values that are its own. */
  readonly reads: readonly ResourceKind[];
  /** The indexes that its store must have, beside the shared ones. */
  readonly indexes?: readonly AnyIndex[];
  /** The RBAC rules that it needs, beside those to watch what it reads. */
  readonly access: Access;
} & (
  | { readonly needs?: undefined; readonly start: Start<Deps> }
  /** It is not started where there is no cluster. */
  | { readonly needs: 'cluster'; readonly start: Start<Deps & ClusterDeps> }
);

type Start<D> = (deps: D, options: ControllerOptions) => RunningController;

/** All controllers; a new one is its own folder, its deps above and one entry here. */
const controllers: readonly RegisteredController[] = [
  {
    name: 'anchors',
    reads: anchorsReads,
    access: anchorsAccess,
    needs: 'cluster',
    start: (deps, options) => startController(anchorsController(deps), deps, options),
  },
  {
    name: 'mesh-binding',
    reads: bindingReads,
    access: bindingAccess,
    start: (deps, options) => startController(bindingController(deps), deps, options),
  },
  {
    name: 'mesh-endpoints',
    reads: operatorTrafficKinds,
    access: endpointsAccess,
    start: (deps, options) => startController(endpointsController(deps), deps, options),
  },
  {
    name: 'mesh-gateway',
    reads: gatewayReads,
    access: gatewayAccess,
    start: (deps, options) => {
      const sweep = deps.cluster && sweeper({ ...deps, ...deps.cluster });
      return startController(meshGatewayController({ ...deps, sweep }), deps, options);
    },
  },
  {
    name: 'mesh-route-policy',
    reads: routingKinds,
    access: routePolicyAccess,
    start: (deps, options) => startController(meshRoutePolicyController(deps), deps, options),
  },
  {
    name: 'mesh-trust',
    reads: trustReads,
    access: trustAccess,
    needs: 'cluster',
    start: (deps, options) =>
      startController(trustController({ ...deps, ...options, log: deps.telemetry.log }), deps, options),
  },
  {
    name: 'mesh-tailnet',
    reads: tailnetReads,
    indexes: tailnetIndexes,
    access: tailnetAccess,
    start: (deps, options) =>
      startController(tailnetController({ ...deps, log: deps.telemetry.log }), deps, options),
  },
  {
    name: 'relay-ports',
    reads: relayPortsReads,
    access: relayPortsAccess,
    needs: 'cluster',
    start: (deps, options) =>
      startController(relayPortsController({ ...deps, httpGet, log: deps.telemetry.log }), deps, options),
  },
  {
    name: 'vip-services',
    reads: vipServicesReads,
    access: vipServicesAccess,
    needs: 'cluster',
    start: (deps, options) =>
      startController(vipServicesController({ ...deps, log: deps.telemetry.log }), deps, options),
  },
];

/** Starts all controllers that have what they need. */
export function startControllers(
  given: Deps,
  timing: Omit<ControllerOptions, 'watched'>,
): readonly RunningController[] {
  const deps = { ...given, prepared: deriveShared(given) };
  const { cluster } = deps;
  const options = { ...timing, watched: cluster && controllerKinds };
  return controllers.flatMap(controller => {
    if (controller.needs === undefined) return [controller.start(deps, options)];
    return cluster ? [controller.start({ ...deps, ...cluster }, options)] : [];
  });
}

/** What all reconciles at a Gateway read is derived in slices before the first of them, which would hold up everything else. */
async function deriveShared({ tracking, values, clock }: Deps): Promise<void> {
  const { untracked } = tracking;
  await untracked.whenSynced();
  for (const gateway of untracked.list('Gateway')) {
    await inSlices(values.attachedRoutes.steps(keyOf(refTo(gateway))), clock);
  }
}

/** The names of all controllers. */
export const controllerNames: readonly string[] = controllers.map(({ name }) => name);

/** The kinds that any controller reads, and those that traffic is derived from for all of them: a process watches them in a cluster. */
export const controllerKinds: readonly ResourceKind[] = [
  ...new Set([...operatorTrafficKinds, ...controllers.flatMap(({ reads }) => reads)]),
];

/** The indexes of all controllers. */
export const controllerIndexes: readonly AnyIndex[] = [
  ...sharedIndexes,
  ...controllers.flatMap(({ indexes = [] }) => indexes),
];

const watched = watchAccess(controllerKinds);

/** What the operator may do in a cluster: watch, what its controllers may, and what events, leader election and callers need. */
export const operatorAccess: OperatorAccess = {
  cluster: distinct([
    ...watched.cluster,
    ...controllers.flatMap(({ access }) => access.cluster),
    ...eventAccess,
  ]),
  own: distinct([
    ...watched.own,
    ...controllers.flatMap(({ access }) => access.own),
    ...leaseAccess(COMPONENTS.operator),
    ...podAddressesAccess,
  ]),
  proxies: podAddressesAccess,
  // No controller creates MeshEndpoints.
  unused: [{ apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['create'] }],
};

/** Several controllers may need the same rule. */
function distinct(rules: readonly AccessRule[]): readonly AccessRule[] {
  return rules.filter((rule, index) => rules.findIndex(other => isEqual(other, rule)) === index);
}
