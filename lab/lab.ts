import { expectPortOfGateway, startGateway } from './gateway/gateway.ts';
import type { GatewayWish } from './gateway/gateway.ts';
import { versionOfBinary } from './parts/locate.ts';
import type { BinaryName } from './parts/parts.ts';
import { startMeshNode } from './tailnet/mesh-node.ts';
import { expectFree, freePorts } from './process/ports.ts';
import { REMOTES, startRemote, startTailnet } from './tailnet/remote.ts';
import type { ServicePorts } from './tailnet/remote.ts';
import { startWhole } from './process/start-whole.ts';
import { starterIn } from './process/starter.ts';
import type { Starter } from './process/starter.ts';
import { LabFolder } from './state.ts';
import type { Lab, RemoteNode } from './state.ts';

/** What a lab needs from outside: a folder of its own, the programs, and a word for each step. */
export type LabWish = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  readonly tell: (step: string) => void;
  /** What must be known before; without it all ports are free ones, and devices have any address. */
  readonly places?: LabPlaces;
  /** A gateway beside the tailnet; there can be one on a machine. */
  readonly gateway?: GatewayWish;
  /** Ends the start of the lab, and what has started. */
  readonly stop: AbortSignal;
};

/** Where things are to be, so that objects can be written before: devices then join in order, and so have the same addresses. */
export type LabPlaces = {
  readonly proxyPort: number;
  readonly services: Readonly<Partial<Record<RemoteName, ServicePorts>>>;
};

type RemoteName = (typeof REMOTES)[number];

/** Starts a tailnet with one mesh node that offers the proxy and two remote nodes with services; a lab that runs is kept. */
export async function startLab(wish: LabWish): Promise<Lab> {
  const folder = new LabFolder(wish.folder);
  const running = folder.running();
  if (running) return expectAsWished(running, wish);
  await folder.remove();
  if (wish.gateway) await expectPortOfGateway();
  await expectFree(portsOf(wish));
  folder.create();
  return startWhole(folder, wish.stop, stop => {
    const pathOf = (name: BinaryName) => {
      stop.throwIfAborted();
      return wish.pathOf(name);
    };
    return startAll(folder, { ...wish, pathOf });
  });
}

/** Every port that is wished, by what it is for. */
function portsOf({ places, gateway }: LabWish): Readonly<Record<string, number>> {
  const services = Object.entries(places?.services ?? {}).flatMap(([name, ports]) =>
    Object.entries(ports).map(([service, port]) => [`${service} of ${name}`, port] as const),
  );
  const listeners = Object.entries(gateway?.objects?.listeners ?? {});
  const proxy = places ? [['the proxy of the mesh node', places.proxyPort] as const] : [];
  return Object.fromEntries([
    ...proxy,
    ...services,
    ...listeners.map(([name, port]) => [`listener ${name}`, port] as const),
  ]);
}

function expectAsWished(running: Lab, { gateway }: LabWish): Lab {
  const isAsWished =
    (running.gateway === undefined) === (gateway === undefined) &&
    running.gateway?.extension === gateway?.extension;
  if (isAsWished) return running;
  const what = running.gateway
    ? `with ${running.gateway.extension ?? 'no extension server'}`
    : 'without a gateway';
  throw new Error(`a lab ${what} is up: end it first (npm run lab -- down)`);
}

async function startAll(folder: LabFolder, wish: LabWish): Promise<Lab> {
  const starter = starterIn(folder, wish.pathOf, wish.searchPath);
  const base = { notes: folder, starter, envoyVersion: versionOfBinary('envoy') };
  wish.tell(wish.gateway ? 'tailnet, gateway' : 'tailnet');
  const [mesh, gateway] = await Promise.all([
    startMesh(starter, wish),
    wish.gateway && startGateway(base, wish.gateway),
  ]);
  return gateway ? { ...mesh, gateway } : mesh;
}

async function startMesh(starter: Starter, { tell, places }: LabWish): Promise<Lab> {
  const tailnet = await startTailnet(starter);
  tell(`mesh node, ${REMOTES.join(', ')}`);
  const [port] = places ? [places.proxyPort] : await freePorts(1);
  const proxy = `127.0.0.1:${port}`;
  const mesh = () => startMeshNode(starter, tailnet, { hostname: 'meshd', tags: ['tag:mesh'], proxy });
  const remotes = REMOTES.map(name => () => startRemote(starter, tailnet, name, places?.services[name]));
  if (!places) {
    const [, ...started] = await Promise.all([mesh(), ...remotes.map(start => start())]);
    return { tailnet, proxy, remotes: started };
  }
  await mesh();
  const started: RemoteNode[] = [];
  for (const start of remotes) started.push(await start());
  return { tailnet, proxy, remotes: started };
}
