import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Clock } from '../../src/api/clock.ts';
import { createProbe } from '../../src/health/probe/create-probe.ts';
import type { Check, CheckSettings, CheckTls } from '../../src/health/check.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { eventually } from '../support/eventually.ts';
import { forward, hang, reset, respond, send, startMember } from '../support/health/member.ts';
import type { OnConnect } from '../support/health/member.ts';
import { checkOf, httpSettings } from '../support/health/probing.ts';
import { startTcpService } from '../support/health/services.ts';
import { CA } from '../support/lab/health/certificates.ts';

const TLS: CheckTls = {
  serverName: 'web-1.example.ts.net',
  ca: CA,
  minVersion: undefined,
  insecureSkipVerify: false,
};
const GRPC = { type: 'GRPC', authority: 'web', service: '', tls: undefined } as const;

const SETTINGS: Readonly<Record<string, CheckSettings>> = {
  HTTP: httpSettings(),
  HTTPS: httpSettings({ tls: TLS }),
  gRPC: GRPC,
  'gRPC over TLS': { ...GRPC, tls: TLS },
  TCP: { type: 'TCP' },
  UDP: { type: 'UDP' },
};

/** Frames of HTTP/2: empty SETTINGS, a PING, and a header that never ends. */
const H2_SETTINGS = '\0\0\0\x04\0\0\0\0\0';
const H2_PING = '\0\0\x08\x06\0\0\0\0\0abcdefgh';
const H2_CONTINUATION = '\0\0\x01\x09\0\0\0\0\x01a';

/** What a service does with a connection, after the first bytes. */
const SERVICES: Readonly<Record<string, (socket: Socket) => void>> = {
  'does not respond': () => undefined,
  'closes the connection': socket => void socket.end(),
  'resets the connection': socket => void socket.resetAndDestroy(),
  'sends garbage': socket => void socket.write(Buffer.alloc(100_000, '\x16\x03\x01garbage')),
  'responds with 200 and an endless body': socket =>
    flood(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(9999)),
  'sends endless headers': socket => flood(socket, 'HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(999)),
  'sends endless pings': socket => flood(socket, H2_SETTINGS, H2_PING.repeat(999)),
  'sends endless settings': socket => flood(socket, H2_SETTINGS, H2_SETTINGS.repeat(999)),
  'sends endless continuations': socket => flood(socket, H2_SETTINGS, H2_CONTINUATION.repeat(999)),
};

/** What a proxy does with a CONNECT. */
const PROXIES: Readonly<Record<string, OnConnect>> = {
  'does not respond': hang,
  'resets the connection': reset,
  'responds with 500': respond('HTTP/1.1 500 X\r\n\r\n'),
  'responds with 500, a body and no end': send('HTTP/1.1 500 X\r\ncontent-length: 99\r\n\r\nx'),
  'responds with garbage': send('garbage\r\n\r\n'),
  'responds with 200 and more bytes': send('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello\r\n\r\n'),
};

function flood(socket: Socket, first: string, then: string): void {
  const write = () => socket.writable && socket.write(then, 'latin1') && setImmediate(write);
  socket.on('drain', write);
  socket.write(first, 'latin1');
  write();
}

/** What is open of a kind. */
const openResources = (kind: RegExp) => process.getActiveResourcesInfo().filter(name => kind.test(name));
const openSockets = () => openResources(/^(TCPSocket|TCPConnect|UDP|GetAddr)/);
const openListeners = () => openResources(/^TCPServer/).length;

/** The clock of the machine, which counts the timers that wait. */
function countingClock() {
  const timers = new Set<symbol>();
  const after: Clock['after'] = (ms, call) => {
    const timer = Symbol();
    timers.add(timer);
    const cancel = systemClock.after(ms, () => {
      timers.delete(timer);
      call();
    });
    return () => {
      timers.delete(timer);
      cancel();
    };
  };
  return { clock: { ...systemClock, after }, timers };
}

/** Checks a service in every way, to the end and aborted; every check ends, and nothing stays open. */
async function expectNothingLeft(onConnect: OnConnect, serve: (socket: Socket) => void): Promise<void> {
  const member = await startMember();
  onTestFinished(() => member.close());
  member.onConnect = onConnect;
  const { port } = await startTcpService(socket => void socket.once('data', () => serve(socket)));
  const { clock, timers } = countingClock();
  const { probe, close } = createProbe({ members: () => [member], clock });
  const paths: readonly Check['via'][] = [{ is: 'pool' }, { is: 'direct' }, { is: 'relay', port: 20_000 }];
  const results = Object.values(SETTINGS).flatMap(settings =>
    paths.flatMap(via => {
      const check = checkOf(port, settings, { via, timeoutMs: 50 });
      return [
        probe(check, new AbortController().signal),
        ...[0, 5, 20].map(ms => probe(check, AbortSignal.timeout(ms))),
      ];
    }),
  );
  const kinds = (await Promise.all(results)).map(({ is }) => is);
  expect(kinds.length).toBe(Object.keys(SETTINGS).length * paths.length * 4);
  close();
  // The listeners of the member and the service stay open.
  const left = { sockets: [], listeners: 4, timers: 0 };
  await eventually(() =>
    expect({ sockets: openSockets(), listeners: openListeners(), timers: timers.size }).toEqual(left),
  );
}

describe('every check leaves no socket and no timer behind', () => {
  it.each(Object.entries(SERVICES))('of a service that %s', async (_what, serve) => {
    await expectNothingLeft(forward, serve);
  });

  it.each(Object.entries(PROXIES))('through a proxy that %s', async (_what, onConnect) => {
    await expectNothingLeft(onConnect, () => undefined);
  });
});
