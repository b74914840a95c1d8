import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { freePorts } from '../../../../lab/process/ports.ts';
import { starterIn } from '../../../../lab/process/starter.ts';
import type { OwnFolder } from '../../lab/lab.ts';

/** Starts CoreDNS on loopback, where all services of remote nodes are, and returns its port. */
export async function startDnsServer({ folder }: OwnFolder): Promise<number> {
  folder.create();
  const starter = starterIn(folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const [port = 0] = await freePorts(1);
  const corefile = join(folder.path, 'Corefile');
  const hosts = 'hosts {\n 192.0.2.7 service.example.org\n }';
  writeFileSync(corefile, `.:${port} {\n bind 127.0.0.1\n ${hosts}\n}\n`);
  starter.start('dns', 'coredns', ['-conf', corefile]);
  return port;
}
