import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  NOISY,
  printFigure,
  QUIET,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import { startDnsServer } from '../../support/dns/dns-server.ts';
import type { DnsServer, Zone } from '../../support/dns/dns-server.ts';
import { until } from '../../../lab/process/wait.ts';

const SILENT = 1000;

const zone: Zone = {
  'first.example.com': { addresses: ['8.8.8.8'] },
  'second.example.com': { addresses: ['8.8.8.8'] },
};
for (let index = 0; index < SILENT; index++) zone[`h${index}.noisy.example.com`] = 'silent';

const folder = mkdtempSync(join(tmpdir(), 'mesh-lookups-'));
let tenants: Tenants;
let dns: DnsServer;
beforeAll(async () => {
  tenants = await startTenants();
  dns = await startDnsServer(zone);
});
afterAll(async () => {
  await tenants.end();
  await dns.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A command prefix with which a process has the DNS server of the test as the one of its system. */
function withDnsServer(): readonly string[] {
  const file = join(folder, 'resolv.conf');
  writeFileSync(file, `nameserver ${dns.address}\n`);
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  return ['unshare', '--mount', 'sh', '-c', script, file];
}

function external(host: string) {
  const fields = { meshIP: '100.64.0.1', meshFQDN: 'web.example.ts.net', port: 80, protocol: 'HTTP' };
  return { name: host.replaceAll('.', '-'), ...fields, externalTarget: `${host}:80` };
}

/** How long it takes until a new host of the quiet tenant has its addresses. */
async function msToAddresses(name: string): Promise<number> {
  const begin = performance.now();
  const endpoints = [external(`${name}.example.com`)];
  await tenants.admin.apply(tenantEndpoints(QUIET, name, endpoints));
  await statusWhen(tenants.admin, { namespace: QUIET, name }, ({ endpoints: [entry] = [] }) =>
    entry?.resolvedAddresses?.includes('8.8.8.8') === true ? entry : undefined,
  );
  return performance.now() - begin;
}

it('a namespace with a thousand silent hosts does not delay the lookups of another one', async () => {
  const { admin, startOperator } = tenants;
  await admin.apply(tailnetBehind(await startMeshProxy(() => 200)));
  await startOperator({}, withDnsServer());
  const alone = await msToAddresses('first');
  const silent = Object.keys(zone).filter(host => zone[host] === 'silent');
  await admin.apply(tenantEndpoints(NOISY, 'silent', silent.map(external)));
  await until('lookups of silent hosts', note => {
    const hosts = new Set(dns.queries.filter(query => query.endsWith('.noisy.example.com')));
    note(`${hosts.size} hosts`);
    return Promise.resolve(hosts.size >= 16);
  });
  const beside = await msToAddresses('second');
  printFigure('time to the addresses of a new host', {
    alone: `${alone.toFixed(0)} ms`,
    beside: `${beside.toFixed(0)} ms`,
  });
  // In one line, it waits for all of the silent hosts: about 4 minutes.
  expect(beside).toBeLessThan(20_000);
});
