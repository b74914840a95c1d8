import { join } from 'node:path';
import type { ServiceName } from './backends.ts';
import type { BinaryName } from './parts.ts';
import { startNode } from './node.ts';
import { freePorts } from './ports.ts';
import { readWhenReady, starterIn } from './starter.ts';
import type { Starter } from './starter.ts';
import { LabFolder } from './state.ts';
import type { Lab, RemoteNode } from './state.ts';
import type { TailnetAddresses } from './tailnet.ts';

/** What a lab needs from outside: a folder of its own, the programs, and a word for each step. */
export type LabWish = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  readonly tell: (step: string) => void;
};

const DOMAIN = 'example.ts.net';
const REMOTES = ['web-1', 'web-2'];

/** Starts a tailnet with one mesh node that offers the proxy and two remote nodes with services; a lab that runs is kept. */
export async function startLab(wish: LabWish): Promise<Lab> {
  const folder = new LabFolder(wish.folder);
  const running = folder.running();
  if (running) return running;
  await folder.remove();
  folder.create();
  const starter = starterIn(folder, wish.pathOf, wish.searchPath);
  try {
    const lab = await startAll(starter, wish.tell);
    folder.finish(lab);
    return lab;
  } catch (error) {
    for (const record of [...folder.processes()].reverse()) wish.tell(`stopping ${record.name}`);
    await folder.remove();
    throw error;
  }
}

async function startAll(starter: Starter, tell: (step: string) => void): Promise<Lab> {
  tell('tailnet');
  const tailnet = await startTailnet(starter);
  tell(`mesh node, ${REMOTES.join(', ')}`);
  const [port] = await freePorts(1);
  const proxy = `127.0.0.1:${port}`;
  const [, ...remotes] = await Promise.all([
    startNode(starter, tailnet, { hostname: 'meshd', tags: ['tag:mesh'], proxy }),
    ...REMOTES.map(name => startRemote(starter, tailnet, name)),
  ]);
  return { tailnet, proxy, remotes };
}

async function startTailnet(starter: Starter): Promise<TailnetAddresses> {
  const ready = join(starter.folder, 'tailnet.ready');
  const record = starter.start('tailnet', 'tailnet', ['--domain', DOMAIN, '--ready-file', ready]);
  return (await readWhenReady(record, ready)) as TailnetAddresses;
}

/** A device forwards what it receives to the same port of this machine, where its services listen. */
async function startRemote(
  starter: Starter,
  tailnet: TailnetAddresses,
  hostname: string,
): Promise<RemoteNode> {
  const name = `${hostname}-services`;
  const [ready, caFile] = [join(starter.folder, `${name}.ready`), join(starter.folder, `${name}-ca.pem`)];
  const fqdn = `${hostname}.${DOMAIN}`;
  const args = [
    '--name',
    hostname,
    '--names',
    `${fqdn},localhost`,
    '--ca-file',
    caFile,
    '--ready-file',
    ready,
  ];
  const record = starter.start(name, 'backends', args);
  const [node, answer] = await Promise.all([
    startNode(starter, tailnet, { hostname, tags: ['tag:web'] }),
    readWhenReady(record, ready),
  ]);
  const { control, ...services } = answer as Readonly<Record<ServiceName | 'control', string>>;
  const ports = Object.entries(services).map(
    ([service, where]) => [service, Number(where.split(':').at(-1))] as const,
  );
  return {
    hostname,
    fqdn,
    address: node.addresses[0] ?? '',
    control,
    ports: Object.fromEntries(ports),
    caFile,
  };
}
