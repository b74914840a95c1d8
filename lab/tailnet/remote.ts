import { join } from 'node:path';
import type { ServiceName } from './backends.ts';
import { startMeshNode } from './mesh-node.ts';
import { readWhenReady } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import type { RemoteNode } from '../state.ts';
import type { TailnetAddresses } from './tailnet.ts';

/** The tailnet's domain. */
const DOMAIN = 'example.ts.net';

/** The names of the remote nodes. */
export const REMOTES = ['web-1', 'web-2'] as const;

/** The fixed ports of services; others are free ones. */
export type ServicePorts = Readonly<Partial<Record<ServiceName, number>>>;

/**
 * Starts the control server and the relay of a tailnet on an address of this machine that its nodes can reach. The admin
 * endpoint is always on loopback.
 */
export async function startTailnet(
  starter: Starter,
  host = '127.0.0.1',
  domain = DOMAIN,
): Promise<TailnetAddresses> {
  const ready = join(starter.folder, 'tailnet.ready');
  const record = starter.start('tailnet', 'tailnet', [
    `--listen=${host}:0`,
    `--domain=${domain}`,
    `--ready-file=${ready}`,
  ]);
  return (await readWhenReady(record, ready)) as TailnetAddresses;
}

/** Starts a device with services behind it: it forwards what it receives to the same port of this machine's loopback. */
export async function startRemote(
  starter: Starter,
  tailnet: TailnetAddresses,
  hostname: string,
  fixedPorts: ServicePorts = {},
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
    ...Object.entries(fixedPorts).map(([service, port]) => `--${service}-port=${port}`),
  ];
  const record = starter.start(name, 'backends', args);
  const [node, answer] = await Promise.all([
    startMeshNode(starter, tailnet, { hostname, tags: ['tag:web'] }),
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
