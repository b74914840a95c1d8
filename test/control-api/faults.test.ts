import { request as httpsRequest } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FAULTS } from '../../lab/control-api/faults.ts';
import type { Fault } from '../../lab/control-api/faults.ts';
import { startHttpProxy } from '../../lab/control-api/http-proxy.ts';
import type { HttpProxy, HttpProxyOptions } from '../../lab/control-api/http-proxy.ts';
import { callsOf, keyBody, send, simulated } from '../support/control/simulated.ts';
import type { SendCall, Simulated } from '../support/control/simulated.ts';
import { AUTHORITY, OTHER_AUTHORITY } from '../support/kubernetes/wire-certificates.ts';

const LIST = '/tailnet/-/devices';

async function withDevice(): Promise<readonly [Simulated, SendCall]> {
  const api = await simulated();
  api.addDevice({ hostname: 'web-1' });
  return [api, await callsOf(api, api.addClient(['all']))];
}

describe('requirement 16: a fault', () => {
  it.each([
    ['internalError', 500, '{"message":"internal server error"}', 'application/json'],
    ['badGateway', 502, 'Bad Gateway</h1>', 'text/html'],
    ['unavailable', 503, 'no healthy upstream', 'text/plain; charset=utf-8'],
    ['timeout', 504, 'request took too long to process, please try again later', 'application/json'],
    ['empty', 200, '', null],
    ['html', 200, '<!DOCTYPE html>', 'text/html'],
    ['plainText', 200, 'OK', 'text/plain; charset=utf-8'],
  ] as const)('can be an answer: %s', async (name, status, text, contentType) => {
    const [api, call] = await withDevice();
    api.fail({ fault: FAULTS[name], times: 1 });
    const answer = await call('GET', LIST);
    expect(answer).toMatchObject({ status, text: expect.stringContaining(text) as unknown });
    expect(answer.headers.get('content-type')).toBe(contentType);
    expect(await call('GET', LIST)).toMatchObject({
      status: 200,
      json: { devices: [{ hostname: 'web-1' }] },
    });
  });

  it('applies to the named routes, a number of times or until it is removed', async () => {
    const [api, call] = await withDevice();
    const remove = api.fail({ routes: ['devices.list', 'token'], fault: FAULTS.unavailable });
    api.fail({ routes: ['keys.list'], fault: FAULTS.unavailable, times: 2 });
    const statuses = async (path: string) => {
      const seen: number[] = [];
      for (let count = 0; count < 3; count++) seen.push((await call('GET', path)).status);
      return seen;
    };
    expect(await statuses(LIST)).toEqual([503, 503, 503]);
    expect(await statuses('/tailnet/-/keys')).toEqual([503, 503, 200]);
    expect(await statuses('/tailnet/-/settings')).toEqual([200, 200, 200]);
    expect(await send(api, '/api/v2/oauth/token', { method: 'POST' })).toMatchObject({ status: 503 });
    remove();
    expect(await statuses(LIST)).toEqual([200, 200, 200]);
  });

  it('applies to a share of the calls, the same ones for the same seed', async () => {
    const statuses = async () => {
      const [api, call] = await withDevice();
      api.fail({ share: 0.5, fault: FAULTS.internalError });
      const seen: number[] = [];
      for (let count = 0; count < 40; count++) seen.push((await call('GET', LIST)).status);
      return seen;
    };
    const first = await statuses();
    expect(new Set(first)).toEqual(new Set([200, 500]));
    expect(await statuses()).toEqual(first);
  });

  it('may be decided by a function at each call', async () => {
    const [api, call] = await withDevice();
    const routes: string[] = [];
    api.fail({ fault: route => (routes.push(route) === 2 ? FAULTS.unavailable : undefined) });
    expect(await call('GET', LIST)).toMatchObject({ status: 200 });
    expect(await call('GET', '/tailnet/-/keys')).toMatchObject({ status: 503 });
    expect(await call('GET', LIST)).toMatchObject({ status: 200 });
    expect(routes).toEqual(['devices.list', 'keys.list', 'devices.list']);
  });

  const breaks: readonly Fault[] = [
    { is: 'reset', when: 'before' },
    { is: 'reset', when: 'after' },
    { is: 'reset', when: 'in-body' },
  ];

  it.each(breaks)('can break the connection: %o', async fault => {
    const [api, call] = await withDevice();
    api.fail({ fault, times: 1 });
    await expect(call('GET', LIST)).rejects.toThrow();
    expect(await call('GET', LIST)).toMatchObject({ status: 200 });
  });

  it.each([
    [{ is: 'reset', when: 'before' }, 0],
    [{ is: 'reset', when: 'after' }, 1],
    [{ is: 'reset', when: 'in-body' }, 1],
    [{ ...FAULTS.timeout, is: 'answer' }, 0],
    [{ ...FAULTS.timeout, is: 'lost-answer' }, 1],
  ] as const)('happens before or after the call is carried out: %o creates %i keys', async (fault, made) => {
    const [api, call] = await withDevice();
    api.fail({ routes: ['keys.create'], fault, times: 1 });
    await call('POST', '/tailnet/-/keys', keyBody()).catch(() => undefined);
    const { keys } = (await call('GET', '/tailnet/-/keys')).json as { readonly keys: readonly unknown[] };
    expect(keys.filter(key => (key as { keyType: string }).keyType === 'auth')).toHaveLength(made);
  });

  it('can end the body in the middle of the JSON', async () => {
    const [api, call] = await withDevice();
    api.fail({ fault: { is: 'truncate' }, times: 1 });
    const answer = await call('GET', LIST);
    expect(answer).toMatchObject({ status: 200, json: undefined });
    expect(answer.text).toMatch(/^\{"devices":\[/);
  });

  it('can change the content type of correct JSON, or its types', async () => {
    const [api, call] = await withDevice();
    api.fail({ fault: { is: 'content-type', value: 'text/html' }, times: 1 });
    const html = await call('GET', LIST);
    expect(html.headers.get('content-type')).toBe('text/html');
    expect(html.json).toMatchObject({ devices: [{ hostname: 'web-1' }] });
    api.fail({ fault: { is: 'wrong-types' }, times: 1 });
    expect((await call('GET', LIST)).json).toMatchObject({ devices: { items: [{ hostname: 'web-1' }] } });
  });

  it('can leave out half of a list', async () => {
    const [api, call] = await withDevice();
    api.fail({ fault: { is: 'half-lists' }, times: 1 });
    expect((await call('GET', LIST)).json).toEqual({ devices: [] });
    expect((await call('GET', LIST)).json).toMatchObject({ devices: [{ hostname: 'web-1' }] });
  });

  it('can delay an answer, and send it in small pieces', async () => {
    const [api, call] = await withDevice();
    api.fail({ fault: { is: 'delay', ms: 5 } });
    api.fail({ fault: { is: 'drip', bytes: 100, everyMs: 1 } });
    expect((await call('GET', LIST)).json).toMatchObject({ devices: [{ hostname: 'web-1' }] });
    expect(api.requests().at(-1)).toMatchObject({ faults: ['delay', 'drip'] });
  });

  it('can leave a call without an answer', async () => {
    const [api] = await withDevice();
    api.fail({ fault: { is: 'hang' } });
    const signal = AbortSignal.timeout(50);
    await expect(send(api, '/api/v2/tailnet/-/devices', { signal })).rejects.toThrow('timeout');
  });

  it('can be that the server is closed; closing it again has no effect', async () => {
    const [api, call] = await withDevice();
    await api.close();
    await expect(call('GET', LIST)).rejects.toThrow('fetch failed');
    await expect(api.close()).resolves.toBeUndefined();
  });

  it('can redirect to another host', async () => {
    const [api, call] = await withDevice();
    api.fail({ fault: { is: 'redirect', to: 'http://127.0.0.1:1' } });
    const answer = await call('GET', `${LIST}?fields=all`);
    expect(answer.status).toBe(307);
    expect(answer.headers.get('location')).toBe('http://127.0.0.1:1/api/v2/tailnet/-/devices?fields=all');
  });
});

/** Sends a request by HTTPS with a trusted authority. */
async function status(url: string, ca: string, socket?: Socket): Promise<number> {
  const options = { ca, agent: false, ...(socket ? { createConnection: () => tlsIn(socket, ca) } : {}) };
  const request = httpsRequest(`${url}/api/v2/tailnet`, options).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

const tlsIn = (socket: Socket, ca: string) => connectTls({ socket, ca, host: '127.0.0.1' });

describe('requirement 16: TLS', () => {
  it('is by a certificate of a private authority, and fails with another one', async () => {
    const api = await simulated({ certificate: AUTHORITY.server });
    expect(api.url).toMatch(/^https:/);
    expect(await status(api.url, AUTHORITY.ca)).toBe(401);
    await expect(status(api.url, OTHER_AUTHORITY.ca)).rejects.toThrow(/certificate/);
    api.presentCertificate(OTHER_AUTHORITY.server);
    expect(await status(api.url, OTHER_AUTHORITY.ca)).toBe(401);
    await expect(status(api.url, AUTHORITY.ca)).rejects.toThrow(/certificate/);
  });
});

async function proxied(options: HttpProxyOptions = {}): Promise<HttpProxy> {
  const proxy = await startHttpProxy(options);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** Opens a tunnel through a proxy. */
async function tunnel(proxy: HttpProxy, target: string, headers = {}): Promise<readonly [number, Socket]> {
  const send = proxy.url.startsWith('https:') ? httpsRequest : httpRequest;
  const request = send(proxy.url, { method: 'CONNECT', path: target, headers, ca: AUTHORITY.ca }).end();
  const [response, socket] = (await once(request, 'connect')) as [IncomingMessage, Socket];
  onTestFinished(() => void socket.destroy());
  return [response.statusCode ?? 0, socket];
}

describe('the HTTP proxy for tests', () => {
  it.each([{}, { certificate: AUTHORITY.server }])('opens tunnels, with %o', async options => {
    const api = await simulated({ certificate: AUTHORITY.server });
    const proxy = await proxied(options);
    const target = new URL(api.url).host;
    const [code, socket] = await tunnel(proxy, target);
    expect(code).toBe(200);
    expect(await status(api.url, AUTHORITY.ca, socket)).toBe(401);
    expect(proxy.requests()).toEqual([`CONNECT ${target}`]);
  });

  it('forwards plain requests', async () => {
    const api = await simulated();
    const proxy = await proxied();
    const url = `${api.url}/api/v2/tailnet`;
    const request = httpRequest(proxy.url, { path: url, headers: { host: new URL(api.url).host } }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.resume().statusCode).toBe(401);
    expect(proxy.requests()).toEqual([`GET ${url}`]);
  });

  it('can demand credentials', async () => {
    const api = await simulated();
    const proxy = await proxied({ credentials: { user: 'mesh', password: 'secret' } });
    const target = new URL(api.url).host;
    expect((await tunnel(proxy, target))[0]).toBe(407);
    const headers = { 'proxy-authorization': `Basic ${Buffer.from('mesh:secret').toString('base64')}` };
    expect((await tunnel(proxy, target, headers))[0]).toBe(200);
  });
});
