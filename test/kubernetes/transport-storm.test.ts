import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeTransport } from '../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { eventually } from '../support/eventually.ts';
import { relayTo } from '../support/kubernetes/wire-relay.ts';
import { serveWire, WIRES } from '../support/kubernetes/wire-server.ts';
import type { Exchange, WireServer } from '../support/kubernetes/wire-server.ts';
import { allOf, wireTransport } from '../support/kubernetes/wire-transport.ts';

/** The same storms in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

type Deed = (each: Exchange, server: WireServer) => void;

const soon = (deed: () => void) => void setTimeout(deed, 1);

/** The behaviours of a server. */
const DEEDS: Readonly<Record<string, Deed>> = {
  answer: each => each.respond(200, '{"n":0}\n'),
  refuse: each => each.respond(503, ''),
  reset: each => each.reset(),
  hangUp: each => each.hangUp(),
  garble: each => each.respond(200, '{"n":'),
  cutShort: each => {
    each.begin(200, { 'content-type': 'application/json', 'content-length': '100' });
    each.write('{"n":0}\n');
    soon(() => each.hangUp());
  },
  drip: each => {
    each.begin(200);
    each.write('{"n"');
    soon(() => each.write(':0}\n'));
    soon(() => each.end());
  },
  killAll: (_each, server) => server.killAll(),
  forget: () => undefined,
};

type Request = { readonly deed: string; readonly how: 'ask' | 'write' | 'follow' | 'abort' };

const requests = fc.array(
  fc.record<Request>({
    deed: fc.constantFrom(...Object.keys(DEEDS)),
    how: fc.constantFrom('ask', 'write', 'follow', 'abort'),
  }),
  { minLength: 1, maxLength: 40 },
);

async function carryOut(transport: KubeTransport, { deed, how }: Request): Promise<unknown> {
  const path = `/${deed}`;
  switch (how) {
    case 'ask':
      return await transport.send({ verb: 'get', path });
    case 'write':
      return await transport.send({ verb: 'create', path, body: { type: 'application/json', value: {} } });
    case 'follow':
      return (await allOf(await transport.stream({ verb: 'watch', path })))[0];
    case 'abort':
      return await transport.send({ verb: 'get', path, signal: AbortSignal.timeout(2) });
  }
}

describe.each(WIRES)('over %s, with any behaviour of a server', wire => {
  it('each request has a response or a KubeError, and requests succeed afterwards', async () => {
    const property = fc.asyncProperty(requests, async storm => {
      const server: WireServer = await serveWire(wire, {
        respond: each => DEEDS[each.path.slice(1)]?.(each, server),
      });
      const relay = await relayTo(new URL(server.url));
      const transport = wireTransport(relay.url, { timeoutMs: 500 });
      const outcomes = await Promise.allSettled(storm.map(request => carryOut(transport, request)));
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') expect(outcome.value).toEqual({ n: 0 });
        else expect(outcome.reason).toBeInstanceOf(KubeError);
      }
      await eventually(async () => {
        expect(await transport.send({ verb: 'create', path: '/answer' })).toEqual({ n: 0 });
      });
      expect(relay.open()).toBeLessThanOrEqual(10);
      await transport.close();
      await eventually(() => expect(relay.open()).toBe(0));
      await server.close();
    });
    await fc.assert(property, { seed, numRuns: 12 });
  });

  it('many requests may share a signal', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on('warning', warn);
    onTestFinished(() => void process.off('warning', warn));
    const server = await serveWire(wire, { respond: each => each.respond(200, '{}') });
    const transport = wireTransport(server.url, { clock: systemClock });
    const { signal } = new AbortController();
    const pending = Array.from({ length: 100 }, () => transport.send({ verb: 'get', path: '/', signal }));
    expect(await Promise.all(pending)).toHaveLength(100);
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });
});
