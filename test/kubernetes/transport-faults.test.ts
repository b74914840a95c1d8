import type { Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import type {
  KubeErrorReason,
  KubeRequest,
  KubeTransport,
} from '../../src/kubernetes/transport/transport.ts';
import { eventually } from '../support/eventually.ts';
import { serveRaw } from '../support/kubernetes/wire-raw.ts';
import { serveWire, WIRES } from '../support/kubernetes/wire-server.ts';
import type { Exchange, Wire } from '../support/kubernetes/wire-server.ts';
import { allOf, kubeErrorOf, SENT, wireTransport } from '../support/kubernetes/wire-transport.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const READ: KubeRequest = { verb: 'get', path: '/api/v1/namespaces/a' };
const WRITE: KubeRequest = {
  verb: 'apply',
  path: '/api/v1/namespaces/a',
  body: { type: 'application/apply-patch+yaml', value: { a: SENT } },
};

type Fault = {
  readonly what: string;
  readonly respond: (exchange: Exchange) => void;
  readonly reason: KubeErrorReason;
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly takes?: 'all the time';
  /** The reason for a stream, where it differs. */
  readonly followed?: KubeErrorReason | 'the end';
};

const HTML = { 'content-type': 'text/html' };
const LENGTH_40 = { 'content-type': 'application/json', 'content-length': '40' };
const date = (ms: number) => new Date(ms).toUTCString();

const FAULTS: readonly Fault[] = [
  { what: 'a reset before the answer', respond: each => each.reset(), reason: 'Unreachable' },
  { what: 'an end before the answer', respond: each => each.hangUp(), reason: 'Unreachable' },
  { what: 'silence', respond: () => undefined, reason: 'Unreachable', takes: 'all the time' },
  {
    what: 'a reset in the body',
    respond: each => {
      each.begin(200);
      each.write('{"a":');
      setTimeout(() => each.reset(), 10);
    },
    reason: 'Unreachable',
  },
  {
    what: 'an end in the body',
    respond: each => {
      each.begin(200);
      each.write('{"a":1}');
      setTimeout(() => each.hangUp(), 10);
    },
    reason: 'Unreachable',
  },
  {
    what: 'an end before the content length',
    respond: each => {
      each.begin(200, LENGTH_40);
      each.write('{"a":1}');
      setTimeout(() => each.hangUp(), 10);
    },
    reason: 'Unreachable',
  },
  { what: 'a 500', respond: each => each.respond(500, ''), reason: 'Failed', status: 500 },
  {
    what: 'a 502 of a proxy',
    respond: each => each.respond(502, '<p>', HTML),
    reason: 'Failed',
    status: 502,
  },
  { what: 'a 302', respond: each => each.respond(302, '', { location: '/' }), reason: 'Failed', status: 302 },
  {
    what: 'a 503 with seconds',
    respond: each => each.respond(503, '', { 'retry-after': '3' }),
    reason: 'Failed',
    status: 503,
    retryAfterMs: 3000,
  },
  {
    what: 'a 429 with seconds',
    respond: each => each.respond(429, '{}', { 'retry-after': '2' }),
    reason: 'Busy',
    status: 429,
    retryAfterMs: 2000,
  },
  {
    what: 'a 429 with a date of its own clock',
    respond: each => each.respond(429, '', { date: date(1_000_000), 'retry-after': date(1_007_000) }),
    reason: 'Busy',
    status: 429,
    retryAfterMs: 7000,
  },
  {
    what: 'a 429 with a date long ago',
    respond: each => each.respond(429, '', { 'retry-after': date(0) }),
    reason: 'Busy',
    status: 429,
    retryAfterMs: 0,
  },
  {
    what: 'a 429 for a day',
    respond: each => each.respond(429, '', { 'retry-after': '86400' }),
    reason: 'Busy',
    status: 429,
    retryAfterMs: 60_000,
  },
  {
    what: 'a 429 with its time in the body alone',
    respond: each => each.respond(429, JSON.stringify({ kind: 'Status', details: { retryAfterSeconds: 4 } })),
    reason: 'Busy',
    status: 429,
    retryAfterMs: 4000,
  },
  {
    what: 'a 429 with nonsense',
    respond: each => each.respond(429, 'null', { 'retry-after': 'soon' }),
    reason: 'Busy',
    status: 429,
  },
  {
    what: 'truncated JSON',
    respond: each => each.respond(200, '{"a":'),
    reason: 'Malformed',
    followed: 'Unreachable',
  },
  { what: 'a line that is no JSON', respond: each => each.respond(200, '{"a":\n'), reason: 'Malformed' },
  {
    what: 'nothing at all',
    respond: each => each.respond(200, ''),
    reason: 'Malformed',
    followed: 'the end',
  },
  { what: 'a page', respond: each => each.respond(200, '<html>', HTML), reason: 'Malformed' },
  {
    what: 'a slow drip for ever',
    respond: each => {
      each.begin(200);
      const drip = setInterval(() => each.write(' '), 5);
      void each.over.then(() => clearInterval(drip));
    },
    reason: 'Unreachable',
    takes: 'all the time',
  },
  {
    what: 'a body over the limit',
    respond: each => each.respond(200, JSON.stringify('x'.repeat(5000))),
    reason: 'Malformed',
  },
];

const LIMITS = { bodyBytes: 4096, lineBytes: 1024 };

const TIMEOUT_MS = 5000;

type Faulty = {
  readonly transport: KubeTransport;
  /** Advances the clock beyond the timeout when the server has the request. */
  readonly timeOut: () => Promise<void>;
};

/** A server that fails except on one path. */
async function faultyServer(wire: Wire, respond: Fault['respond']): Promise<Faulty> {
  const clock = new VirtualClock();
  const { url, seen } = await serveWire(wire, {
    respond: each => (each.path.startsWith('/good') ? each.respond(200, '{"good":true}') : respond(each)),
  });
  const transport = wireTransport(url, { clock, timeoutMs: TIMEOUT_MS, limits: LIMITS });
  const timeOut = async () => {
    await eventually(() => expect(seen.some(({ path }) => path === READ.path)).toBe(true));
    await clock.advance(TIMEOUT_MS);
  };
  return { transport, timeOut };
}

async function expectGood({ transport }: Faulty): Promise<void> {
  expect(await transport.send({ verb: 'get', path: '/good' })).toEqual({ good: true });
}

async function allFrom(transport: KubeTransport): Promise<readonly unknown[]> {
  return await allOf(await transport.stream(READ));
}

describe.each(WIRES)('over %s', wire => {
  describe.each(FAULTS)('$what', ({ respond, reason, status, retryAfterMs, takes, followed = reason }) => {
    it.each([READ, WRITE])('fails a request ($verb), and the next one succeeds', async request => {
      const faulty = await faultyServer(wire, respond);
      await expectGood(faulty);
      const failed = kubeErrorOf(faulty.transport.send(request));
      if (takes) await faulty.timeOut();
      const error = await failed;
      expect([error.reason, error.status, error.retryAfterMs]).toEqual([reason, status, retryAfterMs]);
      await expectGood(faulty);
    });

    it(`is ${followed} for a stream`, async () => {
      const faulty = await faultyServer(wire, each => {
        respond(each);
        // A stream gets a byte at a time.
        if (takes) setTimeout(() => each.reset(), 50);
      });
      const all = allFrom(faulty.transport);
      if (followed === 'the end') {
        expect(await all).toEqual([]);
      } else {
        const error = await kubeErrorOf(all);
        expect([error.reason, error.status]).toEqual([followed, status]);
      }
      await expectGood(faulty);
    });
  });

  it.each<readonly [number, KubeErrorReason]>([
    [400, 'Invalid'],
    [401, 'Unauthorized'],
    [403, 'Forbidden'],
    [404, 'NotFound'],
    [405, 'Failed'],
    [409, 'Conflict'],
    [410, 'Expired'],
    [413, 'Invalid'],
    [415, 'Invalid'],
    [422, 'Invalid'],
    [504, 'Failed'],
  ])('a %i is %s, with the message of the server', async (code, reason) => {
    const words = { kind: 'Status', message: `no: ${'long '.repeat(1000)}` };
    const faulty = await faultyServer(wire, each => each.respond(code, JSON.stringify(words)));
    const error = await kubeErrorOf(faulty.transport.send(WRITE));
    expect([error.reason, error.status]).toEqual([reason, code]);
    expect(error.message).toMatch(new RegExp(`^apply /api/v1/namespaces/a: ${code} no: long`));
    expect(error.message.length).toBeLessThan(1200);
  });

  it('credentials in the message of a server are redacted', async () => {
    const { transport } = await faultyServer(wire, each =>
      each.respond(403, JSON.stringify({ kind: 'Status', message: `for ${each.headers['authorization']}` })),
    );
    const error = await kubeErrorOf(transport.send(READ));
    expect(error.message).toBe('get /api/v1/namespaces/a: 403 for Bearer [redacted]');
  });
});

type RawFault = {
  readonly what: string;
  readonly speak: (socket: Socket) => void;
  readonly reason: KubeErrorReason;
  readonly takes?: 'all the time';
};

function sayOnce(...words: readonly (string | Buffer)[]): (socket: Socket) => void {
  return socket =>
    void socket.once('data', () => {
      for (const word of words) socket.write(word);
      setTimeout(() => socket.destroy(), 20);
    });
}

const RAW_FAULTS: readonly RawFault[] = [
  { what: 'an end at once', speak: socket => void socket.end(), reason: 'Unreachable' },
  {
    what: 'silence from the start',
    speak: () => undefined,
    reason: 'Unreachable',
    takes: 'all the time',
  },
  {
    what: 'an end in the headers',
    speak: sayOnce('HTTP/1.1 200 OK\r\ncontent-ty'),
    reason: 'Unreachable',
  },
  { what: 'garbage', speak: sayOnce('SSH-2.0-OpenSSH_9.9\r\n'), reason: 'Malformed' },
  {
    what: 'chunks that are none',
    speak: sayOnce('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n'),
    reason: 'Malformed',
  },
  {
    what: 'headers without end',
    speak: sayOnce(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`),
    reason: 'Malformed',
  },
];

describe.each(RAW_FAULTS.flatMap(fault => WIRES.map(wire => ({ ...fault, wire }))))(
  '$what over $wire',
  ({ wire, speak, reason, takes }) => {
    it.each([READ, WRITE])('fails a request ($verb)', async request => {
      const [clock, met] = [new VirtualClock(), vi.fn()];
      const url = await serveRaw(wire, socket => {
        met();
        speak(socket);
      });
      const failed = kubeErrorOf(wireTransport(url, { clock, timeoutMs: TIMEOUT_MS }).send(request));
      if (takes) {
        await eventually(() => expect(met).toHaveBeenCalled());
        await clock.advance(TIMEOUT_MS);
      }
      const error = await failed;
      expect([error.reason, error.status]).toEqual([reason, undefined]);
    });
  },
);
