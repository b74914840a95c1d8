import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { ServiceState } from '../../../../../lab/tailnet/backends.ts';
import { until } from '../../../../../lab/process/wait.ts';
import type { Property } from './cells.ts';
import type { Exchange } from '../clients/client.ts';
import type { Subject } from './subject.ts';

type Check = (subject: Subject) => Promise<void>;

const SOON = { everyMs: 5 };
const MB = 1 << 20;
const TURNS = 20;

/** The check of each property; `node off` concerns all rows at once. */
export const CHECKS: Readonly<Record<Exclude<Property, 'node off'>, Check>> = {
  'only by mesh': async ({ addresses, meshAddress }) => deepEqual(await addresses(), [meshAddress]),
  '0 B': subject => (subject.countsConnections ? visit(subject) : payload(subject, 0)),
  '1 B': subject => payload(subject, 1),
  '1200 B': subject => payload(subject, 1_200),
  '1 MB': subject => payload(subject, MB),
  '100 MB': subject => payload(subject, 100 * MB),
  lines,
  turns: async ({ client, service }) => {
    const { openRequests } = await service.state();
    const exchange = await client.open();
    await takeTurns(exchange);
    exchange.reset();
    await untilOpen(service, openRequests);
  },
  WebSocket: webSocket,
  held: ({ held }) => takeTurns(held),
  'client resets': clientResets,
  'service resets': serviceResets,
  'wrong CA': wrongAuthority,
};

/** The same bytes come back, the service gets one request, and the tailnet carried the bytes both ways. */
async function payload(subject: Subject, size: number): Promise<void> {
  const { client, service, carried, repeats } = subject;
  const bytes = randomBytes(size);
  const before = { ...(await service.state()), ...(await carried()) };
  ok((await client.echo(bytes)).equals(bytes), 'other bytes came back');
  const after = { ...(await service.state()), ...(await carried()) };
  const requests = after.requests - before.requests;
  ok(repeats ? requests >= 1 : requests === 1, `the service got ${requests} requests`);
  ok(after.up - before.up >= Math.max(size, 1), `up the tailnet went ${after.up - before.up} bytes`);
  ok(after.down - before.down >= size, `down the tailnet went ${after.down - before.down} bytes`);
}

/** An idle connection reaches the service, and so does its end. */
async function visit({ client, service }: Subject): Promise<void> {
  const before = await service.state();
  const exchange = await client.open();
  await untilOpen(service, before.openRequests + 1);
  exchange.reset();
  await untilOpen(service, before.openRequests);
  equal((await service.state()).requests - before.requests, 1, 'the service did not get exactly one request');
}

async function takeTurns(exchange: Exchange): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    const text = `turn ${turn}`;
    equal((await exchange.turn(Buffer.from(text))).toString(), text);
  }
}

/** Lines arrive for some seconds while the service writes more; when the client disconnects, the service stops. */
async function lines({ client, service }: Subject): Promise<void> {
  if (!client.lines) throw new Error('this client knows no lines');
  const { openRequests } = await service.state();
  const one = await client.lines();
  for (let line = 0; line < TURNS; line += 1) equal(await one.next(), `line ${line}`);
  equal((await service.state()).openRequests, openRequests + 1, 'the service is done with the lines');
  one.reset();
  await untilOpen(service, openRequests);
}

async function webSocket({ client, service }: Subject): Promise<void> {
  if (!client.webSocket) throw new Error('this client knows no WebSocket');
  const { openRequests } = await service.state();
  const socket = await client.webSocket();
  for (const size of [0, 1, MB, 1]) {
    const bytes = randomBytes(size);
    ok((await socket.turn(bytes)).equals(bytes), `another message of ${size} bytes came back`);
  }
  socket.reset();
  await untilOpen(service, openRequests);
}

async function clientResets({ client, service }: Subject): Promise<void> {
  const { openRequests } = await service.state();
  const exchange = await client.open();
  await exchange.turn(Buffer.from('before'));
  equal((await service.state()).openRequests, openRequests + 1);
  exchange.reset();
  await untilOpen(service, openRequests);
  equal((await client.echo(Buffer.from('after'))).toString(), 'after');
}

/** A service that ends during a request cuts it; then requests fail; then they work again. */
async function serviceResets({ client, service }: Subject): Promise<void> {
  const exchange = await client.open();
  await exchange.turn(Buffer.from('before'));
  const [ending, refused] = await whileDead(service, async () => [
    await exchange.ending(),
    await outcomeOf(client.echo(Buffer.from('meanwhile'))),
  ]);
  equal(ending, 'cut', 'what was under way ended as if it were whole');
  expectFailure(refused);
  equal((await client.echo(Buffer.from('after'))).toString(), 'after');
}

async function whileDead<T>(service: Subject['service'], work: () => Promise<T>): Promise<T> {
  await service.set({ mode: 'dead' });
  try {
    return await work();
  } finally {
    await service.set({ mode: 'healthy' });
  }
}

async function wrongAuthority({ distrusted }: Subject): Promise<void> {
  if (!distrusted) throw new Error('there is no such service that is distrusted');
  const before = await distrusted.refusals();
  expectFailure(await outcomeOf(distrusted.client.echo(Buffer.from('secret'))));
  ok((await distrusted.refusals()) > before, 'Envoy refused no certificate');
}

/** How a client sees a service that cannot be reached: a response of Envoy, or a closed connection. */
const FAILURE = /status 503|grpc-status 14|too early|ECONNRESET|EPIPE/;

function expectFailure(outcome: string): void {
  ok(FAILURE.test(outcome), `the client got: ${outcome}`);
}

/** The result of an action that succeeded. */
export const SUCCEEDED = 'it went well';

/** The result of an action: the text of its error, or that it succeeded. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => SUCCEEDED,
    (error: unknown) => String(error),
  );
}

async function untilOpen({ state }: Subject['service'], wanted: number): Promise<void> {
  const poll = async (note: (seen: string) => void): Promise<ServiceState | undefined> => {
    const now = await state();
    note(`${now.openRequests} open requests`);
    return now.openRequests === wanted ? now : undefined;
  };
  await until(`the service to have ${wanted} open requests`, poll, SOON);
}
