import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { setService } from '../../../lab/tailnet/backends.ts';
import { createService, listServices, removeService } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetService } from '../../../lab/tailnet/tailnet.ts';
import type { ServedService } from '../../../src/api/served-services.ts';
import { eventually } from '../../support/eventually.ts';
import { remoteOf, serviceAt } from '../../support/lab/lab.ts';
import { startServingNode } from '../../support/lab/serving-node.ts';
import type { ServingNode } from '../../support/lab/serving-node.ts';
import { portsToTry, startStranger } from '../../support/lab/stranger.ts';
import { refusalsOf } from '../../support/lab/traffic/matrix/matrix-system.ts';
import { clusterOf, meshEndpoints, meshRoute, meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startSystem } from '../../support/lab/traffic/system.ts';
import type { System } from '../../support/lab/traffic/system.ts';
import { connectTunnel, exchange, socksTunnel } from '../../support/lab/tunnel.ts';

let own: System;
let one: ServingNode;
let two: ServingNode;
let three: ServingNode;
let web: TailnetService;
beforeAll(async () => {
  own = await startSystem();
  // In order: of devices that advertise a service, others reach the one that joined first.
  one = await startServingNode(own, 'pod-0');
  two = await startServingNode(own, 'pod-1');
  three = await startServingNode(own, 'pod-2');
  web = await createService(own.lab.tailnet.admin, 'svc:web');
});
afterAll(async () => {
  await Promise.all([one, two, three].map(node => node.close()));
  await own.end();
});

/** The service toward the TCP echo of a device. */
function toward(hostname: string, fields: Partial<ServedService> = {}): ServedService {
  const target = serviceAt(remoteOf(own.lab, hostname), 'tcp');
  return { name: 'svc:web', port: 443, via: 'mesh', target, isAdvertised: true, ...fields };
}

const ANSWER_WITHIN_MS = 10_000;

/** Sends a text to the service as another device of the tailnet does; returns the answer. */
async function ask(text: string, at = `${web.addresses[0]}:443`, proxy = own.lab.proxy): Promise<string> {
  return await exchange(await socksTunnel(proxy, at, ANSWER_WITHIN_MS), text, ANSWER_WITHIN_MS);
}

/** The device to which the connections of others go. */
async function primary(): Promise<string | undefined> {
  const [service] = await listServices(own.lab.tailnet.admin);
  return service?.hosts.find(host => host.primary)?.id;
}

async function untilPrimary(node: ServingNode | undefined): Promise<void> {
  await eventually(async () => expect(await primary()).toBe(node?.node.id));
}

describe('a VIP service of real tailscaleds', () => {
  it('leads other devices to a device of the tailnet, by address and by name', async () => {
    one.update([toward('web-1')]);
    await untilPrimary(one);
    await eventually(async () => expect(await ask('by address')).toContain('by address'));
    const byName = () => ask('by name', 'web.example.ts.net:443');
    await eventually(async () => expect(await byName()).toContain('by name'));
    const status = JSON.parse(await one.tailscale('debug', 'prefs')) as { AdvertiseServices: unknown };
    expect(status.AdvertiseServices).toEqual(['svc:web']);
  });

  it('leads through the HTTP proxy of a device that joined before the service was created', async () => {
    const { admin } = own.lab.tailnet;
    const { addresses } = await createService(admin, 'svc:late');
    onTestFinished(() => removeService(admin, 'svc:late'));
    one.update([toward('web-1', { name: 'svc:late' })]);
    for (const host of [addresses[0], 'late.example.ts.net']) {
      await eventually(async () => {
        const tunnel = await connectTunnel(own.lab.proxy, `${host}:443`);
        expect(await exchange(tunnel, 'by CONNECT', 1000)).toContain('by CONNECT');
      });
    }
  });

  it('leads to an address outside of the tailnet', async () => {
    const port = remoteOf(own.lab, 'web-2').ports['tcp'];
    one.update([toward('web-1', { via: 'direct', target: `127.0.0.1:${port}` })]);
    await eventually(async () => expect(await ask('outside')).toContain('outside'));
  });

  it('answers at its port only, and the device that serves it at none', async () => {
    one.update([toward('web-1')]);
    await eventually(async () => expect(await ask('there')).toContain('there'));
    const stranger = await startStranger(own.lab.tailnet);
    onTestFinished(() => stranger.end());
    const targets = ['169.254.169.254:80', '127.0.0.2:80'];
    const echo = serviceAt(remoteOf(own.lab, 'web-2'), 'udp');
    const { tcp, udp } = portsToTry(one.pid, [443, 80]);
    const service = { address: web.addresses[0] ?? '', tcp, udp: [...udp, 443], targets, echo };
    const answers = await stranger.answersWith(['tcp 443'], service);
    expect(answers.filter(answer => /^(tcp|udp) \d+$/.test(answer))).toEqual(['tcp 443']);
    const device = one.node.addresses[0] ?? '';
    // Hops are not on the loopback address to which the tailnet leads.
    const hops = [
      443,
      Number(/127\.0\.0\.2:(\d+)/.exec(await one.tailscale('serve', 'status', '--json'))?.[1]),
    ];
    expect(hops[1]).toBeGreaterThan(0);
    expect(await stranger.answersAt({ ...service, address: device, tcp: hops, udp: [443] })).toEqual([]);
  });

  it('is withdrawn from a host whose target is not healthy, and goes on at another host', async () => {
    one.update([toward('web-1')]);
    two.update([toward('web-2')]);
    await untilPrimary(one);
    await setService(remoteOf(own.lab, 'web-1').control, 'tcp', { mode: 'dead' });
    onTestFinished(() => setService(remoteOf(own.lab, 'web-1').control, 'tcp', { mode: 'healthy' }));
    one.update([toward('web-1', { isAdvertised: false })]);
    await untilPrimary(two);
    await eventually(async () => expect(await ask('at the other')).toContain('at the other'));
    one.update([toward('web-2')]);
    await untilPrimary(one);
    await eventually(async () => expect(await ask('back')).toContain('back'));
  });

  it('does not answer through the proxies of the devices that serve it', async () => {
    one.update([toward('web-1')]);
    two.update([toward('web-2')]);
    await eventually(async () => {
      const [service] = await listServices(own.lab.tailnet.admin);
      expect(service?.hosts.map(({ active }) => active)).toEqual([true, true]);
    });
    await eventually(async () => expect(await ask('from elsewhere')).toContain('from elsewhere'));
    // The one that others reach dials by the network of its machine, where another host may answer.
    const answers = ({ proxy }: ServingNode) =>
      ask('from a host', undefined, proxy).then(
        answer => answer.includes('from a host'),
        () => false,
      );
    expect(await Promise.all([one, two].map(answers))).toEqual([false, false]);
  });

  it('is withdrawn before a host ends, and goes on at another host', async () => {
    one.update([toward('web-1')]);
    two.update([toward('web-2')]);
    await untilPrimary(one);
    const ended = one.serving.end();
    await untilPrimary(two);
    await eventually(async () => expect(await ask('new')).toContain('new'));
    await one.kill();
    await ended;
    expect(await ask('after')).toContain('after');
  });

  it('goes on at another host where one is killed', async () => {
    two.update([overHttp('web-1')]);
    three.update([overHttp('web-2')]);
    await untilPrimary(two);
    await eventually(async () => expect(await backendOf()).toBe('web-1'));
    await two.kill();
    await untilPrimary(three);
    await eventually(async () => expect(await backendOf()).toBe('web-2'));
  });
});

/** The service toward the HTTP service of a device, whose answers have its name. */
function overHttp(hostname: string): ServedService {
  return toward(hostname, { target: serviceAt(remoteOf(own.lab, hostname), 'http') });
}

async function backendOf(): Promise<string | undefined> {
  return /"backend":"([^"]+)"/.exec(await ask('GET / HTTP/1.0\r\nHost: web\r\n\r\n'))?.[1];
}

/** Routes requests for HOST.test to a service as an endpoint of the tailnet. */
function route(host: string, { name, addresses }: TailnetService, protocol: 'HTTP' | 'HTTPS'): void {
  const [meshIP] = addresses;
  const meshFQDN = name.replace('svc:', '') + `.${own.lab.tailnet.domain}`;
  const options = { name: host, kind: 'HTTPRoute', listener: 'http', hostnames: [`${host}.test`] } as const;
  own.put(host, [
    meshEndpoints(own.lab, host, [{ name: 'service', meshIP, meshFQDN, port: 443, protocol }]),
    meshRoute(own.gateway, { ...options, refs: [{ name: host, port: 443 }] }),
  ]);
}

/** The answer to a request through Envoy. */
async function answer(host: string): Promise<string> {
  const { status, body } = await requestThrough(own.listeners['http'] ?? '', { host: `${host}.test` });
  return `${status} ${body}`;
}

describe('a VIP service that another device serves, as the endpoint of a route', () => {
  beforeAll(() => own.put('tailnet', [meshTailnet(own.lab, [own.lab.proxy])]));

  const serve = (names: readonly string[], service: 'http' | 'https') => {
    const target = serviceAt(remoteOf(own.lab, 'web-1'), service);
    three.update(names.map(name => toward('web-1', { name, target })));
  };

  it('answers through Envoy by its address, also if it is created later', async () => {
    serve(['svc:web', 'svc:late'], 'http');
    route('web', web, 'HTTP');
    await eventually(async () => expect(await answer('web')).toMatch(/^200 .*"web-1"/));
    const late = await createService(own.lab.tailnet.admin, 'svc:late');
    onTestFinished(() => removeService(own.lab.tailnet.admin, 'svc:late'));
    route('late', late, 'HTTP');
    await eventually(async () => expect(await answer('late')).toMatch(/^200 .*"web-1"/));
  });

  it('is reached through Envoy by its name where Envoy originates TLS', async () => {
    serve(['svc:web'], 'https');
    // No device has this address.
    route('named', { ...web, addresses: ['100.64.99.99'] }, 'HTTPS');
    // The certificate of web-1 is of an authority that Envoy does not trust: it came from there if Envoy refuses it.
    await eventually(async () => {
      expect(await answer('named')).toMatch(/^503/);
      const cluster = clusterOf({ kind: 'HTTPRoute', name: 'named' });
      expect(await refusalsOf(own, cluster)).toBeGreaterThan(0);
    });
  });
});
