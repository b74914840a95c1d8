import { once } from 'node:events';
import { request as requestHttp } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf, messageOf } from '../../../lab/process/errors.ts';
import type { RemoteNode } from '../../../lab/state.ts';
import { CA } from '../../support/lab/health/certificates.ts';
import { FAULTS } from '../../support/lab/health/faults.ts';
import type { Fault } from '../../support/lab/health/faults.ts';
import { GRPC_SERVICE } from '../../support/lab/health/services.ts';
import { callGrpc, textMessage } from '../../support/lab/grpc.ts';
import { remoteOf, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';
import { connectTunnel } from '../../support/lab/tunnel.ts';

let own: TestLab;
let web: RemoteNode;
beforeAll(async () => {
  own = await startTestLab();
  web = remoteOf(own.lab, 'web-1');
});
afterAll(async () => {
  await own.end();
});

/** Longer than a slow machine needs for a response, and shorter than a slow service. */
const ANSWER_WITHIN_MS = 3_000;

/** The status of an HTTP response whose headers arrive in time. */
async function statusOf(connection: Socket): Promise<string> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const sent = requestHttp({ createConnection: () => connection, signal });
  const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
  connection.destroy();
  return String(response.statusCode);
}

const GRPC_STATUS = ['', 'SERVING', 'NOT_SERVING'];

/** What a client of each type of check gets from a service through its connection. */
const CLIENTS: Readonly<Record<string, (connection: Socket) => Promise<string>>> = {
  HTTP: statusOf,
  HTTPS: connection => statusOf(connectTls({ socket: connection, ca: CA, servername: web.fqdn })),
  gRPC: async connection => {
    const method = '/grpc.health.v1.Health/Check';
    const { status, message } = await callGrpc(connection, web.fqdn, method, textMessage(GRPC_SERVICE));
    return status === 0 ? String(GRPC_STATUS[message[1] ?? 0]) : `gRPC status ${status}`;
  },
  TCP: async connection => {
    connection.write('there?');
    const [data] = (await once(connection, 'data')) as [Buffer];
    connection.destroy();
    return data.toString();
  },
};

/** The client of a fault's check: for HTTP checks of TCP and TLS endpoints that of HTTP and HTTPS. */
function clientOf({ endpoint, healthCheck }: Fault): string {
  const protocol = String(endpoint['protocol']);
  if (healthCheck['type'] !== 'HTTP') return protocol;
  return 'tls' in endpoint ? 'HTTPS' : 'HTTP';
}

/** What a client gets, or the code of its error. */
async function outcomeOf(fault: Fault, port: number): Promise<string> {
  try {
    const connection = await connectTunnel(own.lab.proxy, `${web.address}:${port}`);
    return (await CLIENTS[clientOf(fault)]?.(connection)) ?? '';
  } catch (error) {
    return codeOf(error) || messageOf(error);
  }
}

const GOOD: Readonly<Record<string, string>> = { HTTP: '200', HTTPS: '200', gRPC: 'SERVING', TCP: 'there?' };

const BAD: Readonly<Record<string, RegExp>> = {
  'wrong-code': /^503$/,
  redirect: /^302$/,
  refused: /refused/,
  hanging: /ABORT/,
  slow: /ABORT/,
  dripping: /ABORT/,
  expired: /^CERT_HAS_EXPIRED$/,
  'other-name': /^ERR_TLS_CERT_ALTNAME_INVALID$/,
  'unknown-authority': /^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/,
  'not-serving': /^NOT_SERVING$/,
  'unknown-service': /^gRPC status 5$/,
  closed: /refused/,
  'tcp-wrong-code': /^503$/,
  'tls-expired': /^CERT_HAS_EXPIRED$/,
};

describe('a service behind the tailnet that fails on command', () => {
  it.each(FAULTS)('is good, bad and good again: $name', async fault => {
    const service = await fault.start();
    const outcomes: string[] = [];
    outcomes.push(await outcomeOf(fault, service.port));
    await service.bad();
    outcomes.push(await outcomeOf(fault, service.port));
    await service.good();
    outcomes.push(await outcomeOf(fault, service.port));
    await service.close();
    const good = GOOD[clientOf(fault)];
    expect(outcomes).toEqual([
      good,
      expect.stringMatching(BAD[fault.name] ?? /a fault without outcome/),
      good,
    ]);
  });
});
