import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bytesField, bytesOf, concat } from '../../src/extension/wire.ts';
import { eventually, IS_LONG } from '../support/eventually.ts';
import { named, route } from '../support/declared.ts';
import { gatewayCluster, read } from '../support/extension/clusters.ts';
import { translation } from '../support/extension/hooks.ts';
import { anyMessage, hostileBytes, seed } from '../support/extension/messages.ts';
import { makeFolders } from '../support/files/folder.ts';
import { codeOf, testClient } from '../support/grpc/client.ts';
import { callHeaders, FRAMES, frame, message, RawConnection } from '../support/grpc/raw.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';
import { startServed } from '../support/standalone/served-process.ts';

const HOOKS = '/envoygateway.extension.EnvoyGatewayExtension';
const CHECK = '/grpc.health.v1.Health/Check';
const CLUSTER_HOOK = `${HOOKS}/PostClusterModify`;
const ROUTE_HOOK = `${HOOKS}/PostRouteModify`;
const TRANSLATION_HOOK = `${HOOKS}/PostTranslateModify`;
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const UNARY = [
  ...['Route', 'VirtualHost', 'HTTPListener', 'Cluster', 'Endpoints', 'Translate'].map(
    what => `${HOOKS}/Post${what}Modify`,
  ),
  CHECK,
];
const STREAMING = [
  '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints',
  '/grpc.health.v1.Health/Watch',
  REFLECTION,
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
];

const OK = 0;
const INTERNAL = 13;
/** The allowed responses to an invalid request. */
const REFUSALS = { invalid: 3, notFound: 5, exhausted: 8 } as const;
const RESET = Buffer.of(0, 0, 0, 8);
const MB = 1_000_000;
const WEB = gatewayCluster([], { name: 'httproute/default/web/rule/0' });

/** A process that serves a folder with one route, and functions that call it. */
async function startTarget() {
  const { folder } = makeFolders();
  mkdirSync(folder, { recursive: true });
  const world = [named(meshTailnet(), 'one'), named(meshEndpoints(), 'web'), route('HTTPRoute', 'web')];
  writeFileSync(join(folder, 'all.yaml'), world.map(object => JSON.stringify(object)).join('\n---\n'));
  const { child, line, lines, output } = startServed('extension-server', { 'resources-dir': folder });
  const port = Number((await line('serving Envoy Gateway and Envoy'))['port']);
  const client = testClient(port);
  const ask = async (path: string, bytes: Uint8Array): Promise<number> => {
    if (UNARY.includes(path)) return (await client.call(path, bytes)).code;
    const stream = client.stream(path);
    const code = codeOf(stream);
    stream.end(Buffer.from(bytes));
    // A watch gets events until its caller ends it.
    if (path.endsWith('/Watch')) stream.once('data', () => stream.cancel());
    return code;
  };
  const meshCluster = async () => {
    const { code, message: answer } = await client.call(TRANSLATION_HOOK, translation({ clusters: [WEB] }));
    expect(code).toBe(OK);
    return bytesOf(answer ?? new Uint8Array(), 1) ?? new Uint8Array();
  };
  return { port, pid: Number(child.pid), client, ask, meshCluster, lines, output };
}

type Target = Awaited<ReturnType<typeof startTarget>>;

/** Sends the same to every method, and returns how each call ended. */
async function askAll({ ask }: Target, bytes: Uint8Array, paths = [...UNARY, ...STREAMING]) {
  const codes: number[] = [];
  for (const path of paths) {
    const code = await ask(path, bytes);
    // What the library cannot decode is INTERNAL in the services that it brings.
    codes.push(path.startsWith('/grpc.') && code === INTERNAL ? REFUSALS.invalid : code);
  }
  return codes;
}

const CANCELLED = 1;

function expectOwnFault(codes: readonly number[]): void {
  expect([OK, CANCELLED, ...Object.values(REFUSALS)]).toEqual(expect.arrayContaining([...new Set(codes)]));
}

async function sendRandomBytes(target: Target): Promise<void> {
  const samples = fc.sample(hostileBytes(anyMessage()), { seed, numRuns: 30 });
  for (const bytes of samples) expectOwnFault(await askAll(target, bytes));
  for (const bytes of samples) {
    const raw = await RawConnection.silent(target.port);
    raw.send(bytes, Buffer.alloc(100, 0xee));
    raw.socket.end();
  }
}

/** To every method in the long form alone. */
async function sendBigMessages(target: Target): Promise<void> {
  const paths = IS_LONG ? [...UNARY, ...STREAMING] : [TRANSLATION_HOOK, REFLECTION];
  expectOwnFault(await askAll(target, bytesField(1, new Uint8Array(50 * MB - 6)), paths));
  expect(await target.ask(CLUSTER_HOOK, Buffer.alloc(50 * MB))).toBe(REFUSALS.invalid);
}

async function sendTooBigMessages(target: Target): Promise<void> {
  expect(await target.ask(CLUSTER_HOOK, Buffer.alloc(100 * MB + 1))).toBe(REFUSALS.exhausted);
  const announced = Buffer.concat([Buffer.of(0, 0xff, 0xff, 0xff, 0xff), Buffer.alloc(1000)]);
  const raw = await RawConnection.open(target.port);
  for (const [at, path] of [...UNARY, ...STREAMING].entries()) {
    raw.call(2 * at + 1, path);
    raw.data(2 * at + 1, announced, 'more');
    await eventually(() => expect(raw.of('headers', 2 * at + 1)).toHaveLength(1));
  }
  raw.socket.destroy();
}

async function sendNothing(target: Target): Promise<void> {
  const empty = new Uint8Array();
  const nested = [1, 2, 3].map(number => bytesField(number, bytesField(number, empty)));
  for (const bytes of [empty, bytesField(1, empty), concat(nested)]) {
    expectOwnFault(await askAll(target, bytes));
  }
}

const GARBAGE = [
  '',
  '{',
  'null',
  '"\\ud800"',
  '[1e999, -0, {"__proto__": {"kind": "MeshBinding"}}]',
  '{"kind":"MeshBinding","apiVersion":"mesh-gateway.dev/v1alpha1","metadata":7,"spec":[]}',
  '{"kind":"MeshBinding","apiVersion":"mesh-gateway.dev/v1alpha1","metadata":{"namespace":"/"},"spec":{"revision":"","targetRefs":[null,{"name":"\\u0000"}]}}',
  '['.repeat(60_000),
  '{"a":'.repeat(10_000),
  'x'.repeat(2 * MB),
];

async function sendGarbageBeside({ client, meshCluster }: Target): Promise<void> {
  const right = await meshCluster();
  const texts = [...GARBAGE.map(text => Buffer.from(text)), Buffer.alloc(1000, 0xff)];
  for (const text of texts) {
    const context = bytesField(1, bytesField(1, text));
    const request = concat([bytesField(1, context), translation({ clusters: [WEB] })]);
    const { code, message: answer } = await client.call(TRANSLATION_HOOK, request);
    expect([code, answer && Buffer.compare(answer, bytesField(1, right))]).toEqual([OK, 0]);
  }
}

async function sendTinyFields(target: Target): Promise<void> {
  for (const field of [bytesField(1, new Uint8Array()), bytesField(2, new Uint8Array())]) {
    expectOwnFault(await askAll(target, Buffer.alloc((IS_LONG ? 10 : 3) * MB, field)));
  }
}

async function callAtOnce({ meshCluster }: Target): Promise<void> {
  const right = Buffer.from(await meshCluster());
  const answers = await Promise.all(Array.from({ length: 1000 }, () => meshCluster()));
  expect(answers.filter(answer => !right.equals(answer))).toEqual([]);
}

/** Sends ten messages of the maximum size at once, without holding them in this process. */
async function sendTenOfTheLargest({ port }: Target): Promise<void> {
  const session = connect(`http://127.0.0.1:${port}`);
  const largest = 100 * MB;
  const head = Buffer.of(0, ...new Uint8Array(4));
  head.writeUInt32BE(largest, 1);
  const piece = Buffer.alloc(MB);
  const send = async (): Promise<unknown> => {
    const stream = session.request({
      ':method': 'POST',
      ':path': CLUSTER_HOOK,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.resume();
    const ended = once(stream, 'close');
    let status: unknown;
    stream.on('response', headers => (status = headers['grpc-status']));
    stream.write(head);
    for (let sent = 0; sent < largest && !stream.closed; sent += piece.length) {
      if (!stream.write(piece)) await Promise.race([once(stream, 'drain'), ended]);
    }
    stream.end();
    await ended;
    return status;
  };
  const statuses = Promise.all(Array.from({ length: 10 }, send));
  const check = await testClient(port).call(CHECK, Buffer.alloc(0));
  expect([check.code, check.message]).toEqual([OK, Buffer.of(8, 1)]);
  expect(new Set(await statuses)).toEqual(new Set([String(REFUSALS.invalid)]));
  session.close();
}

/** Requests much and reads nothing: the windows of its streams are empty. */
async function readSlowly({ port }: Target): Promise<void> {
  const raw = await RawConnection.open(port, [[4, 0]]);
  const request = message(bytesField(1, new Uint8Array(MB / 2)));
  for (let id = 1; id < 100; id += 2) {
    raw.call(id, ROUTE_HOOK);
    for (let at = 0; at < request.length; at += 16_384) {
      const to = at + 16_384;
      raw.data(id, request.subarray(at, to), to < request.length ? 'more' : 'end');
    }
  }
  await eventually(() => expect(raw.of('headers')).toHaveLength(50));
}

const LIST = message(bytesField(7, new Uint8Array()));

/** Opens thousands of streams of each method, with a message and without, and drops them. */
async function floodWithStreams({ port }: Target): Promise<void> {
  for (const path of [...UNARY, ...STREAMING]) {
    const raw = await RawConnection.open(port);
    for (let id = 1; id < 3000; id += 2) {
      const bytes = [frame(FRAMES.headers, 4, id, callHeaders(path)), frame(FRAMES.data, 0, id, LIST)];
      raw.send(...bytes, ...(id % 4 === 1 ? [frame(FRAMES.reset, 0, id, RESET)] : []));
      if (id % 200 === 1) await new Promise(setImmediate);
    }
    raw.socket.destroy();
  }
}

/** Sends endless requests on one stream, and reads no response. */
async function floodOneStream({ port }: Target): Promise<void> {
  const raw = await RawConnection.open(port, [[4, 0]]);
  const batch = Buffer.concat(Array.from({ length: 500 }, () => LIST));
  for (const [at, path] of STREAMING.entries()) {
    raw.call(2 * at + 1, path);
    for (let count = 0; count < 20; count++) raw.data(2 * at + 1, batch, 'more');
  }
  await eventually(() => expect(raw.of('headers').length).toBeGreaterThan(1));
  raw.socket.destroy();
}

const ATTACKS = [
  sendRandomBytes,
  sendBigMessages,
  sendTooBigMessages,
  sendNothing,
  sendGarbageBeside,
  sendTinyFields,
  readSlowly,
  callAtOnce,
  sendTenOfTheLargest,
  floodWithStreams,
  floodOneStream,
];

/** The peak memory of a process, in MB. */
function peakOf(pid: number): number {
  const [, kilobytes = ''] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

it('the extension server responds correctly after hostile input, logs no error and stays below 800 MB', async () => {
  const target = await startTarget();
  const right = await target.meshCluster();
  expect(read(right).edsClusterConfig?.edsConfig?.configSourceSpecifier.case).toBe('apiConfigSource');
  for (const attack of ATTACKS) {
    await attack(target);
    const check = await testClient(target.port).call(CHECK, Buffer.alloc(0));
    expect([attack.name, check.code, check.message]).toEqual([attack.name, OK, Buffer.of(8, 1)]);
    expect(await target.meshCluster(), attack.name).toEqual(right);
  }
  expect(target.lines.filter(({ level }) => level === 'error')).toEqual([]);
  expect(target.output()).toBe('');
  expect(peakOf(target.pid)).toBeLessThan(800);
}, 600_000);
