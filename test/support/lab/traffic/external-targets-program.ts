/**
 * Sends requests to a service outside of the tailnet while its name gets another address, in a network and a mount
 * namespace of its own, and prints what answered. The addresses are public ones, which exist in that network only.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requestThrough } from '../../../../lab/gateway/envoy.ts';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { starterIn } from '../../../../lab/process/starter.ts';
import { until } from '../../../../lab/process/wait.ts';
import { meshEndpoints, meshRoute, meshTailnet } from './objects.ts';
import { startSystem } from './system.ts';
import type { System } from './system.ts';

const [FIRST, SECOND] = ['9.9.9.1', '9.9.9.2'] as const;
const HOST = 'service.example.com';
const NAME = 'outside';
const PORT = 8000;

/** The address of a proxy that does not exist and is not used. */
const NO_PROXY = '127.0.0.1:1';

type PathIn = (name: string) => string;

/** Services that answer with their own addresses. */
async function startServices(): Promise<void> {
  for (const address of [FIRST, SECOND]) {
    execFileSync('ip', ['address', 'add', `${address}/32`, 'dev', 'lo']);
    const server = createServer((_, response) => void response.end(address)).unref();
    await once(server.listen(PORT, address), 'listening');
  }
}

/** Processes that start after this use the DNS server on 127.0.0.1. */
function useOwnDns(path: PathIn): void {
  writeFileSync(path('resolv.conf'), 'nameserver 127.0.0.1\n');
  execFileSync('mount', ['--bind', path('resolv.conf'), '/etc/resolv.conf']);
}

/** Starts CoreDNS; returns the function that replaces the address of the host. */
function startDns({ folder }: System, path: PathIn): (address: string) => void {
  const answer = (address: string) => writeFileSync(path('hosts'), `${address} ${HOST}\n`);
  answer(FIRST);
  writeFileSync(
    path('Corefile'),
    `.:53 {
  bind 127.0.0.1
  errors
  hosts ${path('hosts')} {
    ttl 1
    reload 100ms
  }
}
`,
  );
  const starter = starterIn(folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  starter.start('coredns', 'coredns', ['-conf', path('Corefile')]);
  return answer;
}

const home = mkdtempSync(join(tmpdir(), 'mesh-external-'));
const path = (name: string) => join(home, name);
useOwnDns(path);
const system = await startSystem();
try {
  const { lab, gateway, listeners } = system;
  await startServices();
  const answer = startDns(system, path);
  const endpoint = {
    name: 'service',
    meshIP: '100.64.9.9',
    meshFQDN: `service.${lab.tailnet.domain}`,
    port: 80,
    protocol: 'HTTP',
    externalTarget: `${HOST}:${PORT}`,
  };
  system.put('tailnet', [meshTailnet(lab, [NO_PROXY])]);
  system.put('endpoints', [meshEndpoints(lab, NAME, [endpoint])]);
  const refs = [{ name: NAME, port: 80 }];
  system.put('route', [
    meshRoute(gateway, {
      name: NAME,
      kind: 'HTTPRoute',
      listener: 'http',
      hostnames: ['outside.test'],
      refs,
    }),
  ]);
  const untilFrom = (address: string) =>
    until(`an answer of ${address}`, async note => {
      const { status, body } = await requestThrough(listeners['http'] ?? '', { host: 'outside.test' });
      note(`${status} ${body}`);
      return status === 200 && body === address ? body : undefined;
    });
  const answers = [await untilFrom(FIRST)];
  answer(SECOND);
  answers.push(await untilFrom(SECOND));
  console.log(JSON.stringify({ answers }));
} finally {
  await system.end();
  rmSync(home, { recursive: true });
}
