import { expectPortOfGateway, startGateway } from './gateway/gateway.ts';
import type { GatewayOptions } from './gateway/gateway.ts';
import { versionOfBinary } from './parts/locate.ts';
import type { BinaryName } from './parts/parts.ts';
import { startMeshNode } from './tailnet/mesh-node.ts';
import { expectFree, freePorts } from './process/ports.ts';
import { REMOTES, startRemote, startTailnet } from './tailnet/remote.ts';
import type { ServicePorts } from './tailnet/remote.ts';
import { startTogether } from './process/start-together.ts';
import { starterIn } from './process/starter.ts';
import type { Starter } from './process/starter.ts';
import { LabFolder } from './state.ts';
import type { Lab, RemoteNode } from './state.ts';

/** What a lab is started with. */
export type LabOptions = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  readonly onStep: (step: string) => void;
  /** Ports that are fixed; without them all ports are free ones, and devices join in any order. */
  readonly fixedPorts?: FixedPorts;
  /** A gateway beside the tailnet; a machine runs at most one. */
  readonly gateway?: GatewayOptions;
  /** Aborts the start, and ends what has been started. */
  readonly stop: AbortSignal;
};

/** Fixed ports, so that objects can name them; devices then join in order and get the same addresses each time. */
export type FixedPorts = {
  readonly proxyPort: number;
  readonly services: Readonly<Partial<Record<RemoteName, ServicePorts>>>;
};

type RemoteName = (typeof REMOTES)[number];

/** Starts a tailnet with one mesh node that offers the proxy and two remote nodes with services, or returns a running lab. */
export async function startLab(options: LabOptions): Promise<Lab> {
  const folder = new LabFolder(options.folder);
  const running = folder.running();
  if (running) return expectSameOptions(running, options);
  await folder.remove();
  if (options.gateway) await expectPortOfGateway();
  await expectFree(portsOf(options));
  folder.create();
  return startTogether(folder, options.stop, stop => {
    const pathOf = (name: BinaryName) => {
      stop.throwIfAborted();
      return options.pathOf(name);
    };
    return startAll(folder, { ...options, pathOf });
  });
}

/** Every fixed port, by its purpose. */
function portsOf({ fixedPorts, gateway }: LabOptions): Readonly<Record<string, number>> {
  const services = Object.entries(fixedPorts?.services ?? {}).flatMap(([name, ports]) =>
    Object.entries(ports).map(([service, port]) => [`${service} of ${name}`, port] as const),
  );
  const listeners = Object.entries(gateway?.objects?.listeners ?? {});
  const proxy = fixedPorts ? [['the proxy of the mesh node', fixedPorts.proxyPort] as const] : [];
  return Object.fromEntries([
    ...proxy,
    ...services,
    ...listeners.map(([name, port]) => [`listener ${name}`, port] as const),
  ]);
}

function expectSameOptions(running: Lab, { gateway }: LabOptions): Lab {
  const isSame =
    (running.gateway === undefined) === (gateway === undefined) &&
    running.gateway?.extension === gateway?.extension;
  if (isSame) return running;
  const what = running.gateway
    ? `with ${running.gateway.extension ?? 'no extension server'}`
    : 'without a gateway';
  throw new Error(`a lab ${what} is up: end it first (npm run lab -- down)`);
}

async function startAll(folder: LabFolder, options: LabOptions): Promise<Lab> {
  const starter = starterIn(folder, options.pathOf, options.searchPath);
  const base = { notes: folder, starter, envoyVersion: versionOfBinary('envoy') };
  options.onStep(options.gateway ? 'tailnet, gateway' : 'tailnet');
  const [mesh, gateway] = await Promise.all([
    startMesh(starter, options),
    options.gateway && startGateway(base, options.gateway),
  ]);
  return gateway ? { ...mesh, gateway } : mesh;
}

async function startMesh(starter: Starter, { onStep, fixedPorts }: LabOptions): Promise<Lab> {
  const tailnet = await startTailnet(starter);
  onStep(`mesh node, ${REMOTES.join(', ')}`);
  const [port] = fixedPorts ? [fixedPorts.proxyPort] : await freePorts(1);
  const proxy = `127.0.0.1:${port}`;
  const mesh = () => startMeshNode(starter, tailnet, { hostname: 'meshd', tags: ['tag:mesh'], proxy });
  const remotes = REMOTES.map(name => () => startRemote(starter, tailnet, name, fixedPorts?.services[name]));
  if (!fixedPorts) {
    const [, ...started] = await Promise.all([mesh(), ...remotes.map(start => start())]);
    return { tailnet, proxy, remotes: started };
  }
  await mesh();
  const started: RemoteNode[] = [];
  for (const start of remotes) started.push(await start());
  return { tailnet, proxy, remotes: started };
}
