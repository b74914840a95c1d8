import { parseTargets, TARGETS_KEY, targetsVersion } from './api/relay-targets.ts';
import { formatServices, parseServices, SERVICES_KEY, servicesVersion } from './api/served-services.ts';
import { clusterSettings, relaySettings, telemetrySettings } from './process/declared-settings.ts';
import { helpOn, readSettings } from './process/settings.ts';
import type { Given } from './process/settings.ts';
import { KeptData } from './files/kept-data.ts';
import { startRelay } from './relay/relay.ts';
import type { Relay } from './relay/relay.ts';
import { watchConfigMap } from './kubernetes/config-map.ts';
import { localApiOn } from './serving/local-api.ts';
import { dialOn } from './serving/dial.ts';
import { Front } from './serving/front.ts';
import type { FrontOptions } from './serving/front.ts';
import { followLists } from './serving/front-lists.ts';
import { followMeshd } from './serving/follow-meshd.ts';
import { Serving } from './serving/serving.ts';
import { systemClock } from './runtime/clock.ts';
import { runUntilSignal } from './runtime/shutdown.ts';
import { serve } from './telemetry/http.ts';
import type { Route } from './telemetry/http.ts';
import { createLog } from './telemetry/log.ts';
import type { Log } from './telemetry/log.ts';
import { frontMetrics, relayMetrics, restClientMetrics, sourceMetrics } from './telemetry/metrics.ts';
import { createReadiness, healthRoutes } from './telemetry/readiness.ts';
import { createRegistry, metricsRoutes } from './telemetry/registry.ts';
import type { Metrics } from './telemetry/registry.ts';

const SETTINGS = { ...relaySettings, ...clusterSettings, logLevel: telemetrySettings.logLevel };

/** A ConfigMap that is watched is not in a store, whose gauges these are. */
const { sourceObjects: _objects, sourceUndecodable: _undecodable, ...reflectorMetrics } = sourceMetrics;

const METRICS = { ...relayMetrics, ...frontMetrics, ...reflectorMetrics, ...restClientMetrics };

/** What `mesh-gateway help relay` prints. */
export function relayHelp(): string {
  return `mesh-gateway relay

The front of a mesh pod: serves the proxy by which Envoys reach services on the
mesh (HTTP CONNECT, through meshd in the same pod), to listed callers and toward
listed destinations alone; relays datagrams between Envoy and the mesh; and has
meshd serve VIP services on its tailnet. One ConfigMap, which it watches, has
callers, destinations, UDP ports and VIP services. The operator runs it in mesh
pods.

${helpOn(SETTINGS)}`;
}

/** Runs `mesh-gateway relay` until a signal ends the process; throws where it cannot start. */
export async function runRelay(given: Given, version: string): Promise<number> {
  const {
    logLevel,
    podNamespace,
    configMap,
    httpPort,
    kubeconfig,
    meshdSocket,
    maxConnections,
    frontPort,
    keptFile,
    frontConnections,
    ...options
  } = readSettings(SETTINGS, given);
  const log = createLog({ level: logLevel });
  const metrics = createRegistry({ metrics: METRICS, version, known: { kind: ['ConfigMap'] } });
  const telemetry = { log, metrics };
  const readiness = createReadiness();
  const relay = startRelay(options, { ...telemetry, clock: systemClock });
  const frontOptions = { addresses: options.addresses, port: frontPort, maxConnections: frontConnections };
  const { front, serving } = besideMeshd(meshdSocket, { front: frontOptions, maxConnections }, telemetry);
  const kept = keptFile === undefined ? undefined : new KeptData(keptFile, log);
  const followed = followConfigMap(configMap, { relay, front, serving }, log);
  readiness.add('targets', followed.problem);
  let meshd: ReturnType<typeof followMeshd> | undefined;
  try {
    const last = await kept?.read();
    if (last) followed.onData(last);
    if (front && meshdSocket !== undefined) {
      await front.listen();
      meshd = followMeshd(meshdSocket, front, systemClock);
    }
    const watch = await watchConfigMap({
      namespace: podNamespace,
      name: configMap,
      kubeconfig,
      environment: given.environment,
      clock: systemClock,
      random: Math.random,
      now: () => new Date(),
      telemetry,
      onData: data => {
        kept?.keep(data);
        followed.onData(data);
      },
      onMissing: followed.onMissing,
    });
    const routes = [...metricsRoutes(metrics), ...healthRoutes(readiness), relayRoute(followed.report)];
    const listeners = options.addresses.map(host => ({
      setting: 'RELAY_HTTP_PORT',
      address: { host, port: httpPort },
      routes,
    }));
    const servers = await serve(listeners, log);
    log.info('serving metrics and probes', { version, ports: servers.ports });
    watch.start();
    const steps = [
      { name: 'become unready', run: () => readiness.stop() },
      { name: 'stop following meshd', run: () => meshd?.close() },
      { name: 'accept no more connections', run: () => front?.stopAccepting() },
      { name: 'close the watch', run: () => watch.close() },
      { name: 'close the relay', run: () => relay.close() },
      { name: 'withdraw VIP services', run: () => serving?.end() },
      { name: 'close the listeners of VIP services', run: () => serving?.close() },
      { name: 'close connections', run: () => front?.close() },
      { name: 'keep the ConfigMap', run: () => kept?.written() },
      { name: 'close telemetry', run: () => servers.close() },
    ];
    const running = { telemetry, started: Promise.resolve(), steps };
    await runUntilSignal(running, { signals: process, exit: code => process.exit(code) });
    return 0;
  } catch (error) {
    meshd?.close();
    front?.close();
    await Promise.all([relay.close(), serving?.close()]);
    throw error;
  }
}

type Telemetry = { readonly log: Log; readonly metrics: Metrics<typeof METRICS> };

type BesideMeshd = { readonly front: FrontOptions; readonly maxConnections: number };

/** What uses the LocalAPI of the tailscaled in the pod. */
function besideMeshd(socket: string | undefined, options: BesideMeshd, { log, metrics }: Telemetry) {
  if (socket === undefined) return { front: undefined, serving: undefined };
  const deps = { dial: dialOn(socket, systemClock), log, clock: systemClock };
  const front = new Front(options.front, { ...deps, record: metrics.record });
  metrics.readGauge('frontConnections', () => [{ labels: {}, value: front.connections }]);
  return { front, serving: new Serving(options, { ...deps, localApi: localApiOn(socket) }) };
}

type Followers = {
  readonly relay: Relay;
  readonly front: Front | undefined;
  readonly serving: Serving | undefined;
};

/** Updates all that the ConfigMap decides, and reports by which versions of its texts they serve. */
function followConfigMap(name: string, { relay, front, serving }: Followers, log: Log) {
  const lists = front && followLists(front, log);
  const targets = followTargets(relay, log);
  const services = followServices(serving, log);
  return {
    onMissing: targets.onMissing,
    onData: (data: Readonly<Record<string, string>>) => {
      lists?.onData(data);
      targets.onData(data);
      services.onData(data);
    },
    /** Why the pod cannot serve yet. */
    problem: () => {
      if (targets.currentVersion() === undefined) return `the ConfigMap ${name} has not been read yet`;
      const isWaiting = lists !== undefined && lists.version() === undefined;
      return isWaiting ? `the ConfigMap ${name} has no callers and destinations` : undefined;
    },
    report: () => ({
      version: targets.currentVersion(),
      services: services.servedVersion(),
      failed: Object.fromEntries(relay.failed()),
      front: front && {
        version: lists?.version(),
        refusedCallers: front.refusedCallers,
        refused: front.refused,
      },
    }),
  };
}

/** By the versions, the operator knows on which ports a relay listens, and what its pod does not serve any more. */
function relayRoute(report: () => unknown): Route {
  return {
    path: '/relay',
    handle: () => ({ status: 200, type: 'application/json', body: JSON.stringify(report()) }),
  };
}

/** Updates what meshd serves by the ConfigMap; without a list of services the last one stays. */
function followServices(serving: Serving | undefined, log: Log) {
  let current: string | undefined;
  return {
    servedVersion: () => {
      const services = serving?.served();
      return services && servicesVersion(formatServices(services));
    },
    onData: ({ [SERVICES_KEY]: text }: Readonly<Record<string, string>>) => {
      if (text === undefined || text === current) return;
      current = text;
      const services = parseServices(text, ignored => log.warn('ignored lines of VIP services', ignored));
      if (serving) serving.update(services);
      else if (services.length > 0) log.warn('VIP services are not served: MESHD_SOCKET is not set');
    },
  };
}

/**
 * Updates a relay with the targets in its ConfigMap, one version after the other. While the ConfigMap does not exist, the
 * last targets stay: it may have been deleted by mistake, and the operator creates it again.
 */
function followTargets(relay: Relay, log: Log) {
  let requested: string | undefined;
  let current: string | undefined;
  let isMissing = false;
  let updates = Promise.resolve();
  const update = async (text: string, version: string) => {
    if (version !== requested) return;
    const targets = parseTargets(text, ignored => log.warn('ignored lines of relay targets', ignored));
    await relay.update(targets);
    current = version;
    const failed = Object.fromEntries(relay.failed());
    log.info('updated relay targets', { version, ports: targets.size, failed });
  };
  return {
    /** The version of the targets on whose ports the relay listens. */
    currentVersion: () => current,
    onData: ({ [TARGETS_KEY]: text }: Readonly<Record<string, string>>) => {
      isMissing = false;
      if (text === undefined) {
        log.warn('the ConfigMap has no relay targets; the last ones are kept', { key: TARGETS_KEY, current });
        return;
      }
      const version = targetsVersion(text);
      if (version === requested) return;
      requested = version;
      updates = updates
        .then(() => update(text, version))
        .catch((error: unknown) => log.error('unexpected error in the relay', { error }));
    },
    onMissing: () => {
      if (isMissing) return;
      isMissing = true;
      log.warn('the ConfigMap does not exist; the last relay targets are kept', { current });
    },
  };
}
