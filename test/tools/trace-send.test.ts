import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runTrace } from '../../src/tools/trace/command.ts';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { makeFolders } from '../support/files/folder.ts';
import { AUTHORITY } from '../support/kubernetes/wire-certificates.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';

let out: string[] = [];
let err: string[] = [];
beforeEach(() => {
  [out, err] = [[], []];
  vi.spyOn(console, 'error').mockImplementation((text: string) => void err.push(text));
  vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
});
afterEach(() => vi.restoreAllMocks());

async function portOf(server: Server): Promise<number> {
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

const gatewayOn = (protocol: string) => (port: number, name: string, status: object) => ({
  ...openGateway(`default/${name}`, { listeners: [{ name: 'web', port, protocol }] }),
  status,
});

/** A folder with one route through Gateways with a listener at a port. */
function folderWith(...gateways: readonly object[]): string {
  const { folder } = makeFolders();
  mkdirSync(folder);
  const pool = { mode: 'External', addresses: ['10.0.0.1:1055'] };
  const parentRefs = ['public', 'other'].map(name => ({ name }));
  const objects = [
    ...gateways,
    named(meshTailnet({ pool }), 'example'),
    named(meshEndpoints(), 'default/web'),
    route('HTTPRoute', 'default/web', { parentRefs }),
  ];
  writeFileSync(join(folder, 'all.yaml'), objects.map(object => JSON.stringify(object)).join('\n---\n'));
  return folder;
}

/** Traces a request, and returns the exit code and the line of the answer. */
async function traced(folder: string, url: string, ...options: readonly string[]) {
  const status = await runTrace([url, '--file', folder, '--send', ...options], {});
  const answers = out
    .join('\n')
    .split('\n')
    .filter(line => line.includes(' answer '));
  return { status, answers: answers.map(line => line.replace(/\d+ ms/, 'N ms').replace(/\s+/g, ' ')) };
}

/** A server that keeps its requests. */
async function serverOf(answer: RequestListener) {
  const requests: IncomingMessage[] = [];
  const port = await portOf(
    createServer((request, response) => {
      requests.push(request);
      answer(request, response);
    }),
  );
  return { port, requests };
}

const http = gatewayOn('HTTP');

describe('trace --send', () => {
  it('sends the request to the address of the Gateway and the port of its listener', async () => {
    const { port, requests } = await serverOf((_request, response) => response.end('fine'));
    const folder = folderWith(
      http(port, 'public', { addresses: [{ type: 'IPAddress', value: '127.0.0.1' }] }),
    );
    const url = `http://web.example.com:${port}/path?a=b`;
    const options = ['--method', 'POST', '--header', 'X-One: two', '--from', 'default/public'];
    expect(await traced(folder, url, ...options)).toEqual({
      status: 0,
      answers: [`ok answer 200 OK from 127.0.0.1:${port} after N ms`],
    });
    expect(err).toEqual([`sending POST to 127.0.0.1:${port} for Gateway default/public`]);
    expect(requests.map(({ method, url: target }) => `${method} ${target}`)).toEqual(['POST /path?a=b']);
    expect(requests[0]?.headers).toMatchObject({ host: `web.example.com:${port}`, 'x-one': 'two' });
  });

  it('sends it to another address, and has what Envoy explains', async () => {
    const { port, requests } = await serverOf((_request, response) =>
      response.writeHead(503, { 'content-type': 'text/plain' }).end('no healthy upstream'),
    );
    const folder = folderWith(http(80, 'public', {}));
    expect(await traced(folder, 'http://web.example.com/', '--address', `127.0.0.1:${port}`)).toEqual({
      status: 1,
      answers: [
        `BROKEN answer 503 Service Unavailable from 127.0.0.1:${port} after N ms: no healthy upstream`,
      ],
    });
    expect(requests[0]?.headers.host).toBe('web.example.com');
  });

  it('has the status alone where the answer explains nothing', async () => {
    const { port } = await serverOf((_request, response) =>
      response.writeHead(404, { 'content-type': 'text/plain' }).end(),
    );
    const folder = folderWith(http(80, 'public', {}));
    const { status, answers } = await traced(
      folder,
      'http://web.example.com/',
      ...['--address', `127.0.0.1:${port}`],
    );
    expect([status, answers]).toEqual([0, [`ok answer 404 Not Found from 127.0.0.1:${port} after N ms`]]);
  });

  it('reports that nothing answers', async () => {
    const folder = folderWith(http(80, 'public', {}));
    const { status, answers } = await traced(folder, 'http://web.example.com/', '--address', '127.0.0.1:1');
    expect(status).toBe(1);
    expect(answers).toEqual(['BROKEN answer none from 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1']);
  });

  it('reports that nothing answers where a rule redirects, too', async () => {
    const folder = folderWith(http(80, 'public', {}));
    const redirect = { type: 'RequestRedirect', requestRedirect: { scheme: 'https' } };
    const rules = [{ matches: [{ path: { value: '/old' } }], filters: [redirect] }];
    const moved = route('HTTPRoute', 'default/moved', { parentRefs: [{ name: 'public' }], rules });
    writeFileSync(join(folder, 'moved.yaml'), JSON.stringify(moved));
    const url = 'http://web.example.com/old';
    expect(await traced(folder, url, '--address', '127.0.0.1:1')).toEqual({
      status: 1,
      answers: [
        'ok answer a redirect, by the filter RequestRedirect',
        'BROKEN answer none from 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1',
      ],
    });
  });

  it('trusts a certificate as other programs of the machine do', async () => {
    const server = createSecureServer(AUTHORITY.server, (_request, response) => response.end());
    const port = await portOf(server);
    const listener = { name: 'web', port: 443, protocol: 'HTTPS' };
    const folder = folderWith(openGateway('default/public', { listeners: [listener] }));
    const { answers } = await traced(folder, 'https://kube.test/', '--address', `127.0.0.1:${port}`);
    // Newer versions of Node add a hint.
    const text = `BROKEN answer none from 127.0.0.1:${port}: unable to verify the first certificate`;
    expect(answers).toEqual([expect.stringContaining(text)]);
  });

  it('sends nothing where no address is known', async () => {
    const { status, answers } = await traced(folderWith(http(80, 'public', {})), 'http://web.example.com/');
    expect(status).toBe(1);
    expect(answers).toEqual([expect.stringContaining('? answer nothing was sent')]);
  });

  it('sends nothing where a share of the requests reaches no endpoint, and exits with 3', async () => {
    const folder = folderWith(http(80, 'public', {}));
    const rules = [
      {
        matches: [{ path: { value: '/half' } }],
        backendRefs: [meshBackend(), meshBackend({ name: 'gone' })],
      },
    ];
    const half = route('HTTPRoute', 'default/half', { parentRefs: [{ name: 'public' }], rules });
    writeFileSync(join(folder, 'half.yaml'), JSON.stringify(half));
    expect(await traced(folder, 'http://web.example.com/half', '--address', '127.0.0.1:1')).toEqual({
      status: 3,
      answers: ['? answer nothing was sent: a step before is broken'],
    });
  });

  it.each([
    [['a:80', '--send'], '--send is for URLs'],
    [['http://a/', '--address', '127.0.0.1:1'], '--address needs --send'],
    [['http://a/', '--send', '--header', 'Authorization: secret'], '--send with --header needs --from: name'],
    [['http://a/', '--send', '--method', 'post'], '--send with --method needs --from: name'],
    [['http://a/', '--send', '--address', 'here'], '--address "here" is not HOST:PORT'],
  ])('refuses %j', async (args, message) => {
    await expect(runTrace(args, {})).rejects.toThrow(message);
  });

  it('sends nothing to a Gateway of a tenant with the same host and port, to which no route attaches', async () => {
    const { port, requests } = await serverOf((_request, response) => response.end('fine'));
    const tenant = await serverOf((_request, response) => response.end('mine'));
    const listeners = [{ name: 'web', port, protocol: 'HTTP', hostname: 'web.example.com' }];
    const attacker = {
      ...openGateway('tenant/public', { listeners }),
      status: { addresses: [{ type: 'IPAddress', value: '127.0.0.2' }] },
    };
    const victim = http(port, 'public', { addresses: [{ type: 'IPAddress', value: '127.0.0.1' }] });
    const folder = folderWith(attacker, victim);
    const url = `http://web.example.com:${port}/`;
    const { status, answers } = await traced(folder, url);
    expect(status).toBe(0);
    expect(answers).toEqual([
      '? answer nothing was sent: a step before is broken',
      `ok answer 200 OK from 127.0.0.1:${port} after N ms`,
    ]);
    out = [];
    const address = `127.0.0.1:${tenant.port}`;
    const options = ['--header', 'Authorization: secret', '--from', 'tenant/public', '--address', address];
    const asked = await traced(folder, url, ...options);
    expect(asked).toEqual({ status: 1, answers: ['? answer nothing was sent: a step before is broken'] });
    expect([requests.length, tenant.requests.length]).toEqual([1, 0]);
  });

  it('sends nothing where several Gateways are left', async () => {
    const { port, requests } = await serverOf((_request, response) => response.end('fine'));
    const status = { addresses: [{ type: 'IPAddress', value: '127.0.0.1' }] };
    const folder = folderWith(http(port, 'public', status), http(port, 'other', status));
    const found = traced(folder, `http://web.example.com:${port}/`);
    await expect(found).rejects.toThrow('needs --from: name the Gateway that may get the request');
    await expect(found).rejects.toThrow('one of default/public, default/other');
    expect(requests).toEqual([]);
  });
});
