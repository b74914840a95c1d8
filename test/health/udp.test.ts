import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Check } from '../../src/health/check.ts';
import { checkOf, startProbing } from '../support/health/probing.ts';
import { startUdpService } from '../support/relay/datagrams.ts';
import type { UdpService } from '../support/relay/datagrams.ts';

const SUCCESS = { is: 'success' };
const RELAY_PORT = 20_000;

/** A check whose endpoint is behind a port of the relay. */
function relayed(port = RELAY_PORT): Check {
  return checkOf(53, { type: 'UDP' }, { via: { is: 'relay', port } });
}

/** Starts a service until the test has finished. */
async function serve(...options: Parameters<typeof startUdpService>): Promise<UdpService> {
  const service = await startUdpService(...options);
  onTestFinished(() => service.close());
  return service;
}

describe('a UDP check through the relay of a mesh pod', () => {
  it('sends one datagram of 16 bytes to the port of the endpoint, and takes any reply for an answer', async () => {
    const { member, probe } = await startProbing();
    const relay = await serve(() => [Buffer.from('what?')], member.pod);
    expect(await probe(relayed(relay.port))).toEqual(SUCCESS);
    expect(relay.received.map(({ length }) => length)).toEqual([16]);
    expect(member.connects).toEqual([]);
  });

  it('sends from one port each time, so that the relay holds one association, and from two at once', async () => {
    const { member, probe } = await startProbing();
    const socket = createSocket('udp4').bind(0, member.pod);
    onTestFinished(() => void socket.close());
    await once(socket, 'listening');
    const sources = new Set<number>();
    socket.on('message', (payload, { port, address }) => {
      sources.add(port);
      socket.send(payload, port, address);
    });
    const check = relayed(socket.address().port);
    for (let count = 0; count < 5; count++) expect(await probe(check)).toEqual(SUCCESS);
    expect(sources.size).toBe(1);
    expect(await Promise.all([probe(check), probe(check)])).toEqual([SUCCESS, SUCCESS]);
    expect(sources.size).toBe(2);
  });

  it('succeeds by an empty datagram', async () => {
    const { member, probe } = await startProbing();
    const relay = await serve(() => [Buffer.alloc(0)], member.pod);
    expect(await probe(relayed(relay.port))).toEqual(SUCCESS);
  });

  it.each([
    { what: 'both run', meshd: 200, relay: 200, result: { is: 'failure', error: 'no response within 10s' } },
    { what: 'the relay is not ready', meshd: 200, relay: 503, result: { is: 'unknown' } },
    { what: 'meshd is not on a tailnet', meshd: 503, relay: 200, result: { is: 'unknown' } },
  ])('without a reply is $result.is while $what', async ({ meshd, relay, result }) => {
    const { member, probeUntilTimeout } = await startProbing();
    const service = await serve(() => [], member.pod);
    Object.assign(member.health, { meshd, relay });
    const isWaiting = () => service.received.length > 0;
    expect(await probeUntilTimeout(relayed(service.port), isWaiting)).toMatchObject(result);
    expect(service.received.length).toBe(1);
  });

  it('is unknown where the relay does not listen on the port', async () => {
    const { probe } = await startProbing();
    expect(await probe(relayed())).toEqual({
      is: 'unknown',
      why: 'meshd-0: the relay does not receive: connection refused',
    });
  });

  it('is unknown through a proxy that others run, which has no relay', async () => {
    const { member } = await startProbing();
    const { probe } = await startProbing([{ ...member, pod: undefined }]);
    expect(await probe(relayed())).toEqual({ is: 'unknown', why: 'no mesh pod is ready' });
  });
});

describe('a direct UDP check', () => {
  const direct = (port: number) => checkOf(port, { type: 'UDP' }, { via: { is: 'direct' } });

  it('succeeds by a reply of the service', async () => {
    const { probe } = await startProbing([]);
    const service = await serve();
    expect(await probe(direct(service.port))).toEqual(SUCCESS);
  });

  it('fails at once where nothing listens', async () => {
    const { probe } = await startProbing([]);
    const service = await startUdpService();
    service.close();
    const result = await probe(direct(service.port));
    expect(result).toMatchObject({ is: 'failure', error: 'connection refused', code: 'ECONNREFUSED' });
  });
});
