import { hostname, uptime } from 'node:os';
import { COMPONENTS, ENVOY_POD, extensionServerIn, OPERATOR_CONTAINER, selectorOf } from './api/names.ts';
import { openTailnets } from './control/tailnets.ts';
import {
  controllerIndexes,
  controllerKinds,
  controllerNames,
  startControllers,
} from './controllers/registry.ts';
import { clusterEncoding } from './extension/envoy-cluster/encoding-version.ts';
import { gatherCallers } from './store/callers.ts';
import type { ReadCallers } from './store/callers.ts';
import { Tracking } from './store/tracking.ts';
import { trafficIndexes } from './store/traffic/resources.ts';
import { trafficValues } from './store/traffic/values.ts';
import type { TrafficValues } from './store/traffic/values.ts';
import { startHealthChecks } from './health/health-checks.ts';
import type { ProbeDeps } from './health/probe/create-probe.ts';
import type { HealthChecks } from './health/health-checks.ts';
import {
  clusterSettings,
  controllerSettings,
  dialledAddress,
  envoySettings,
  extensionSettings,
  manifestSettings,
  podSettings,
  telemetrySettings,
} from './process/declared-settings.ts';
import { readEndpointGauges } from './controllers/mesh-endpoints/gauges.ts';
import { openExternalTargets } from './controllers/mesh-endpoints/inputs/external-targets.ts';
import { inputSources } from './controllers/mesh-endpoints/inputs/sources.ts';
import { readMeshGatewayGauges } from './controllers/mesh-gateway/gauges.ts';
import { readRoutePolicyGauges } from './controllers/mesh-route-policy/gauges.ts';
import { tcpConnect } from './controllers/mesh-tailnet/enforcement/connect.ts';
import { startEnforcement, withoutPolicies } from './controllers/mesh-tailnet/enforcement/enforcement.ts';
import type { PolicyEnforcement } from './controllers/mesh-tailnet/enforcement/enforcement.ts';
import { readEnforcementGauge } from './controllers/mesh-tailnet/enforcement/gauges.ts';
import { readPoolGauges } from './controllers/mesh-tailnet/pool/gauges.ts';
import type { PoolsOptions } from './controllers/mesh-tailnet/controller.ts';
import type { FrontState } from './controllers/mesh-tailnet/pool/front-condition.ts';
import { readMeshdState } from './controllers/mesh-tailnet/pool/meshd-state.ts';
import { lostDevices } from './controllers/mesh-tailnet/pool/lost-devices.ts';
import { readyMembers } from './controllers/mesh-tailnet/pool/ready-members.ts';
import { addressSettings, guardOf } from './process/addresses.ts';
import { meshPodSettings } from './process/mesh-pods.ts';
import { readVipServiceGauges } from './controllers/vip-services/gauges.ts';
import { runUntilSignal } from './runtime/shutdown.ts';
import type { Running } from './runtime/shutdown.ts';
import { helpOn, readSettings } from './process/settings.ts';
import type { Given, Values } from './process/settings.ts';
import { startTelemetry } from './process/telemetry.ts';
import type { ProcessTelemetry } from './process/telemetry.ts';
import { connectKubernetes } from './kubernetes/connect.ts';
import type { ConnectedKubernetes } from './kubernetes/connect.ts';
import type { OwnNamespace } from './store/own-namespace.ts';
import type { ReadResources, RecordEvents } from './store/resources.ts';
import { clusterInstallationId } from './files/installation.ts';
import { createEventRecorder } from './kubernetes/events/recorder.ts';
import type { KubeEvents } from './kubernetes/events/recorder.ts';
import { kubernetesNamespace, kubernetesReferenced } from './kubernetes/own-namespace.ts';
import { readOwnImage } from './kubernetes/own-image.ts';
import type { OwnImage } from './kubernetes/own-image.ts';
import { watchPodAddresses } from './kubernetes/pod-addresses.ts';
import { kubernetesReplicas } from './kubernetes/replicas.ts';
import { kubernetesLease } from './kubernetes/lease.ts';
import { systemClock, countingSleep } from './runtime/clock.ts';
import { startLeaderElection } from './runtime/leader-election/leadership.ts';
import type { Leadership, LeaderWork } from './runtime/leader-election/leadership.ts';
import { leadControllers } from './runtime/controller.ts';
import { registerSource } from './runtime/observer.ts';
import type { AddressGuard } from './traffic/address-guard.ts';
import { cachedCaBundles } from './traffic/upstream-tls.ts';
import { createPublished } from './runtime/published.ts';
import type { PortsOfTailnet } from './controllers/mesh-endpoints/relay-ports.ts';
import type { ServicesOfTailnet } from './controllers/mesh-endpoints/vip-services.ts';

const SETTINGS = {
  ...clusterSettings,
  ...podSettings,
  ...envoySettings,
  extensionServerAddress: dialledAddress,
  dataPath: extensionSettings.dataPath,
  ...controllerSettings,
  ...addressSettings,
  ...manifestSettings,
  ...meshPodSettings,
  ...telemetrySettings,
};

type OperatorSettings = Values<typeof SETTINGS>;

/** What `mesh-gateway help operator` prints. */
export function operatorHelp(): string {
  return `mesh-gateway operator

Reconciles the objects of mesh-gateway in a cluster. Of several replicas one is
the leader; the others wait with warm caches.

${helpOn(SETTINGS)}`;
}

/** Runs `mesh-gateway operator` until a signal ends the process; throws where it cannot start. */
export async function runOperator(given: Given, version: string): Promise<number> {
  const settings = readSettings(SETTINGS, given);
  const known = { controllers: controllerNames, kinds: controllerKinds };
  const telemetry = await startTelemetry({ ...settings, ...known, version });
  try {
    const running = await startOperator(settings, given, telemetry, version);
    await runUntilSignal(running, { signals: process, exit: code => process.exit(code) });
    return 0;
  } catch (error) {
    await telemetry.close();
    throw error;
  }
}

const [clock, date] = [systemClock, () => new Date()];

async function startOperator(
  settings: OperatorSettings,
  { environment }: Given,
  telemetry: ProcessTelemetry,
  version: string,
): Promise<Running> {
  const { kubeconfig, podNamespace, dataPath } = settings;
  const cluster = await connectKubernetes({
    kubeconfig,
    environment,
    telemetry,
    clock,
    now: date,
    random: Math.random,
    kinds: controllerKinds,
    indexes: [...trafficIndexes, ...controllerIndexes],
    namespace: podNamespace,
    fence: { signal: () => leadership.signal() },
  });
  const { read } = cluster;
  registerSource('cluster', read, telemetry);
  const edsTarget = settings.extensionServerAddress ?? extensionServerIn(podNamespace);
  const guard = guardOf(settings);
  const tracking = new Tracking(read);
  const values = trafficValues(tracking, {
    dataPath,
    guard,
    trustNamespace: podNamespace,
    settingsFrom: 'MeshGateway',
    clusterEncoding: clusterEncoding(edsTarget),
    // It has no right to read EndpointSlices and Backends, and reads the Services that policies name.
    readsBackends: false,
    readsServices: true,
  });
  const events = eventsFrom(settings, cluster, telemetry);
  const userAgent = `mesh-gateway/${version}`;
  const { callers, start: watchCallers, close: endCallers } = callersFrom(settings, cluster, telemetry);
  const { enforcement, stop: endTries } = enforcementFrom(settings, cluster, telemetry);
  const ownImage = ownImageFrom(settings, cluster, telemetry);
  const leaderDeps = {
    cluster,
    telemetry,
    tracking,
    values,
    guard,
    events,
    callers,
    enforcement,
    ownImage,
    userAgent,
  };
  const leadership = electLeader(settings, leaderDeps);
  telemetry.markChecksAdded();
  cluster.start();
  watchCallers();
  return {
    telemetry,
    started: read.whenSynced(),
    steps: [
      { name: 'become unready', run: () => telemetry.readiness.stop() },
      { name: 'stop trying network policies', run: endTries },
      { name: 'stop reading the own image', run: () => ownImage.stop() },
      { name: 'release leadership', run: () => leadership.stop() },
      { name: 'close events', run: () => events.close() },
      { name: 'close the watches of callers', run: endCallers },
      { name: 'close the cluster', run: () => cluster.close() },
      { name: 'close telemetry', run: () => telemetry.close() },
    ],
  };
}

function eventsFrom(
  { podName = hostname() }: OperatorSettings,
  { transport }: ConnectedKubernetes,
  { log, metrics }: ProcessTelemetry,
): KubeEvents {
  return createEventRecorder({
    controller: COMPONENTS.operator,
    instance: podName,
    transport,
    clock,
    now: date,
    random: Math.random,
    record: metrics.record,
    reportFailure: error => log.warn('events cannot be recorded', { error }),
  });
}

/** The pods of Envoys and of the operator, which every replica watches, so that a new leader knows them. */
function callersFrom(
  { podNamespace, proxyNamespaces }: OperatorSettings,
  { transport }: ConnectedKubernetes,
  telemetry: ProcessTelemetry,
) {
  const callers = gatherCallers();
  const deps = { transport, clock, random: Math.random, telemetry };
  const watches = [
    ...proxyNamespaces.map(namespace => ({ namespace, labels: ENVOY_POD.labels, role: 'envoy' as const })),
    { namespace: podNamespace, labels: selectorOf('operator'), role: 'operator' as const },
  ].map(({ role, ...place }) => watchPodAddresses({ ...deps, ...place, onChange: callers.add(role) }));
  return {
    callers,
    start: () => {
      for (const watch of watches) watch.start();
    },
    close: async () => {
      await Promise.all(watches.map(watch => watch.close()));
    },
  };
}

/** What every replica finds out, whether it leads or not. */
function enforcementFrom(
  { networkPolicies, podNamespace: namespace, podName = hostname() }: OperatorSettings,
  { read, transport }: ConnectedKubernetes,
  { log, metrics }: ProcessTelemetry,
): { readonly enforcement: PolicyEnforcement; readonly stop: () => void } {
  const replicas = kubernetesReplicas({ transport, namespace });
  const deps = { read, replicas, podName, connect: tcpConnect(clock), clock, now: date, log };
  const running = networkPolicies === 'on' ? startEnforcement(deps) : undefined;
  const enforcement = running ?? withoutPolicies(podName);
  readEnforcementGauge(enforcement, metrics);
  return { enforcement, stop: () => running?.stop() };
}

/** The image of the relays of mesh pods, which follows that of the operator unless it is set. */
function ownImageFrom(
  { relayImage, podNamespace: namespace, podName }: OperatorSettings,
  { transport }: ConnectedKubernetes,
  { log }: ProcessTelemetry,
): OwnImage {
  if (relayImage !== undefined || podName === undefined)
    return { current: () => ({ image: relayImage }), stop: () => {} };
  return readOwnImage({ transport, namespace, podName, container: OPERATOR_CONTAINER, clock, log });
}

/** What the work of a leader depends on. */
type LeaderDeps = {
  readonly cluster: ConnectedKubernetes;
  readonly telemetry: ProcessTelemetry;
  readonly tracking: Tracking;
  readonly values: TrafficValues;
  readonly guard: AddressGuard;
  readonly events: RecordEvents;
  readonly callers: ReadCallers;
  readonly enforcement: PolicyEnforcement;
  readonly ownImage: OwnImage;
  /** Of requests to control APIs. */
  readonly userAgent: string;
};

/** Runs the controllers while this process is the leader; its caches are warm before. */
function electLeader(settings: OperatorSettings, deps: LeaderDeps): Leadership {
  const { podNamespace, podName = hostname() } = settings;
  const { cluster, telemetry, events } = deps;
  const name = COMPONENTS.operator;
  const ownNamespace = kubernetesNamespace({
    transport: cluster.transport,
    namespace: podNamespace,
    serviceAccount: name,
    clock,
    random: Math.random,
    fence: { signal: () => leadership.signal() },
  });
  const leadership = startLeaderElection({
    name,
    identity: podName,
    telemetry,
    random: Math.random,
    clock: countingSleep(clock, () => uptime() * 1000),
    lease: kubernetesLease({ transport: cluster.leaseTransport, namespace: podNamespace, name, date }),
    isReady: () => cluster.read.isSynced() && deps.ownImage.current() !== undefined,
    lead: ({ number }) => {
      events.record({
        regarding: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: podNamespace, name },
        type: 'Normal',
        reason: 'LeaderElected',
        action: 'Elect',
        note: `${podName} became leader (term ${number})`,
      });
      const relayImage = deps.ownImage.current()?.image;
      return startLeading({ ...settings, relayImage }, ownNamespace, deps);
    },
    mustExit: reason => {
      telemetry.log.error('exiting so that another replica can lead', { error: reason });
      process.exit(1);
    },
  });
  return leadership;
}

const DRAIN = { graceMs: 5000, abortMs: 500 };

/** What the leader reads for metrics. */
const GAUGES = [
  readPoolGauges,
  readEndpointGauges,
  readMeshGatewayGauges,
  readRoutePolicyGauges,
  readVipServiceGauges,
];

/** Starts what only the leader does: it observes tailnets, resolves names, checks health and runs the controllers. */
function startLeading(
  settings: OperatorSettings,
  ownNamespace: OwnNamespace,
  { cluster, telemetry, tracking, values, guard, events, callers, enforcement, userAgent }: LeaderDeps,
): LeaderWork {
  const { podNamespace, relayImage, relayPorts: relayPortRange } = settings;
  const { relayPortsPerNamespace, maxVipServices } = settings;
  const { read, write } = cluster;
  const { metrics } = telemetry;
  const tailnets = openTailnets({ clock, now: date, random: Math.random, userAgent, metrics });
  const targets = openExternalTargets({ clock, guard });
  const referenced = kubernetesReferenced(cluster.referencedTransport);
  const withoutDevice = createPublished<readonly string[]>();
  const relayPorts = createPublished<PortsOfTailnet>();
  const fronts = createPublished<FrontState>();
  const services = vipServicesFrom(podNamespace, read, telemetry);
  const confirmMembers = lostDevices({ read, tailnets, withoutDevice, clock });
  const members = readyMembers(read, withoutDevice);
  const { health, close: endChecks } = healthChecksFrom(settings, { members, confirmMembers }, telemetry);
  const endGauges = GAUGES.map(readGauges => readGauges(read, metrics, settings.endpointMetricLabels));
  const deps = {
    ...settings,
    tracking,
    values,
    write,
    clock,
    now: date,
    telemetry,
    events,
    enforcement,
    ownNamespace,
    health,
    tailnets,
    relayPorts,
    vipServices: services.vipServices,
    inputs: inputSources({ ...settings, read, referenced, clock, guard, targets }),
    pools: poolsOf(settings, { read, ownNamespace, withoutDevice, fronts }),
    anchorNamespace: podNamespace,
    cluster: {
      ...services,
      ownNamespace,
      referenced,
      callers,
      enforcement,
      caBundle: cachedCaBundles(),
      relayImage,
      relayPorts,
      fronts,
      relayPortRange,
      relayPortsPerNamespace,
      maxVipServices,
    },
  };
  const work = leadControllers(startControllers(deps, settings), DRAIN);
  return {
    end: because => {
      const ended = work.end(because);
      // A reconcile may wait longer for the control API than for its grace period.
      tailnets.close();
      targets.close();
      for (const end of endGauges) end();
      // Until then a reconcile may read verdicts, and write status.
      return ended.finally(endChecks);
    },
  };
}

function healthChecksFrom(
  { healthCheckConcurrency: concurrency }: OperatorSettings,
  pools: Pick<ProbeDeps, 'members' | 'confirmMembers'>,
  { log, metrics: { record } }: ProcessTelemetry,
): HealthChecks {
  return startHealthChecks({ ...pools, concurrency, clock, now: date, random: Math.random, record, log });
}

/** What VIP services are registered with. */
function vipServicesFrom(namespace: string, read: ReadResources, { metrics: { record } }: ProcessTelemetry) {
  const vipServices = createPublished<ServicesOfTailnet>();
  const unserved = createPublished<ReadonlyMap<string, string>>();
  return {
    vipServices,
    unserved,
    record,
    installation: installationIn(read, namespace),
    random: Math.random,
  };
}

/** Undefined where this installation has no id. */
function poolsOf(
  { podNamespace, relayImage, orphanAgeMs, meshPods, imagePullSecrets }: OperatorSettings,
  {
    read,
    ...more
  }: Pick<PoolsOptions, 'ownNamespace' | 'withoutDevice' | 'fronts'> & { readonly read: ReadResources },
): PoolsOptions | undefined {
  const installation = installationIn(read, podNamespace);
  if (installation === undefined) return undefined;
  const options = { ...more, installation, relayImage, orphanAgeMs, readMeshd: readMeshdState };
  return { ...options, meshPods: { ...meshPods, imagePullSecrets } };
}

/** Undefined where the Namespace that identifies a cluster cannot be read. */
function installationIn(read: ReadResources, namespace: string): string | undefined {
  const { uid } = read.get({ kind: 'Namespace', namespace: '', name: 'kube-system' })?.metadata ?? {};
  return uid === undefined ? undefined : clusterInstallationId(uid, namespace);
}
