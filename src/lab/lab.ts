import { expectPortOfGateway, startGateway } from './gateway.ts';
import type { GatewayWish } from './gateway.ts';
import { versionOfBinary } from './locate.ts';
import type { BinaryName } from './parts.ts';
import { startMeshNode } from './mesh-node.ts';
import { freePorts } from './ports.ts';
import { REMOTES, startRemote, startTailnet } from './remote.ts';
import { startWhole } from './start-whole.ts';
import { starterIn } from './starter.ts';
import type { Starter } from './starter.ts';
import { LabFolder } from './state.ts';
import type { Lab } from './state.ts';

/** What a lab needs from outside: a folder of its own, the programs, and a word for each step. */
export type LabWish = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  readonly tell: (step: string) => void;
  /** A gateway beside the tailnet; there can be one on a machine. */
  readonly gateway?: GatewayWish;
  /** Ends the start of the lab, and what has started. */
  readonly stop: AbortSignal;
};

/** Starts a tailnet with one mesh node that offers the proxy and two remote nodes with services; a lab that runs is kept. */
export async function startLab(wish: LabWish): Promise<Lab> {
  const folder = new LabFolder(wish.folder);
  const running = folder.running();
  if (running) return expectAsWished(running, wish);
  await folder.remove();
  if (wish.gateway) await expectPortOfGateway();
  folder.create();
  return startWhole(folder, wish.stop, stop => {
    const pathOf = (name: BinaryName) => {
      stop.throwIfAborted();
      return wish.pathOf(name);
    };
    return startAll(folder, { ...wish, pathOf });
  });
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
    startMesh(starter, wish.tell),
    wish.gateway && startGateway(base, wish.gateway),
  ]);
  return gateway ? { ...mesh, gateway } : mesh;
}

async function startMesh(starter: Starter, tell: (step: string) => void): Promise<Lab> {
  const tailnet = await startTailnet(starter);
  tell(`mesh node, ${REMOTES.join(', ')}`);
  const [port] = await freePorts(1);
  const proxy = `127.0.0.1:${port}`;
  const [, ...remotes] = await Promise.all([
    startMeshNode(starter, tailnet, { hostname: 'meshd', tags: ['tag:mesh'], proxy }),
    ...REMOTES.map(name => startRemote(starter, tailnet, name)),
  ]);
  return { tailnet, proxy, remotes };
}
