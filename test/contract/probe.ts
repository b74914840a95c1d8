import { describe, expect, it } from 'vitest';
import { createProbe } from '../../src/health/probe/create-probe.ts';
import type { Check, CheckSettings, ProbeProxy, ProbeResult } from '../../src/health/check.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { eventually } from '../support/eventually.ts';
import { checkOf, httpSettings } from '../support/health/probing.ts';
import { CA } from '../support/lab/health/certificates.ts';
import {
  GRPC_SERVICE,
  startGrpcService,
  startHttpService,
  startHttpsService,
  startTcpService,
} from '../support/lab/health/services.ts';
import type { Service } from '../support/lab/health/services.ts';
import { startUdpService } from '../support/relay/datagrams.ts';

/** A pool of one member, and the services behind it. */
export type OpenedPool = {
  readonly member: ProbeProxy;
  /** Where the member reaches the ports of this machine's loopback. */
  readonly address: string;
  /** A port of the member's relay that forwards to a UDP port of this machine's loopback. */
  readonly relayPort: (port: number) => Promise<number>;
  /** Ends its proxy. */
  readonly stop: () => Promise<void>;
  readonly close: () => Promise<void>;
};

type Scene = OpenedPool & {
  /** Checks a port of the address, by default with a timeout that no machine reaches. */
  readonly probe: (port: number, settings: CheckSettings, changes?: Partial<Check>) => Promise<ProbeResult>;
};

const SUCCESS = { is: 'success' };
const failure = (error: string) => ({ is: 'failure', error, code: expect.any(String) as string });

const HTTP = httpSettings();
const HTTPS = httpSettings({
  tls: { serverName: 'web-1.example.ts.net', ca: CA, minVersion: undefined, insecureSkipVerify: false },
});
const GRPC = {
  type: 'GRPC',
  authority: 'web-1.example.ts.net',
  service: GRPC_SERVICE,
  tls: undefined,
} as const;
const TCP = { type: 'TCP' } as const;
const UDP = { type: 'UDP' } as const;

/** Each mode of a service and its result, in turn. */
async function expectModes<Mode extends string>(
  start: () => Promise<Service<Mode>>,
  probe: (port: number) => Promise<ProbeResult>,
  results: readonly (readonly [NoInfer<Mode>, object])[],
): Promise<void> {
  const service = await start();
  try {
    for (const [mode, result] of results) {
      await service.set(mode);
      expect({ mode, result: await probe(service.port) }).toEqual({ mode, result });
    }
  } finally {
    await service.close();
  }
}

const cases: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'HTTP: by the status of the response': ({ probe }) =>
    expectModes(startHttpService, port => probe(port, HTTP), [
      ['ok', SUCCESS],
      ['failing', failure('got 503, expected 200')],
      ['redirecting', failure('got 302, expected 200')],
      ['closed', failure('connection refused')],
      ['ok', SUCCESS],
    ]),

  'HTTP: by the time of the whole check': ({ probe }) =>
    expectModes(startHttpService, port => probe(port, HTTP, { timeoutMs: 300 }), [
      ['hanging', failure('timeout after 300ms')],
      ['dripping', failure('timeout after 300ms')],
    ]),

  'HTTPS: by the certificate': ({ probe }) =>
    expectModes(startHttpsService, port => probe(port, HTTPS), [
      ['valid', SUCCESS],
      ['expired', failure('certificate expired')],
      ['ofAnotherName', failure('certificate is not valid for web-1.example.ts.net')],
      ['ofAnUnknownAuthority', failure('certificate is signed by an unknown authority')],
      ['valid', SUCCESS],
    ]),

  'gRPC: by the health of the service': async ({ probe }) => {
    await expectModes(startGrpcService, port => probe(port, GRPC), [
      ['ok', SUCCESS],
      ['notServing', failure('health status NOT_SERVING')],
      ['unknownService', failure(`service ${GRPC_SERVICE} is unknown`)],
      ['ok', SUCCESS],
    ]);
    await expectModes(startHttpService, port => probe(port, GRPC), [['ok', failure('response is not gRPC')]]);
  },

  'TCP: by the connection': ({ probe }) =>
    expectModes(startTcpService, port => probe(port, TCP), [
      ['ok', SUCCESS],
      ['closed', failure('connection refused')],
    ]),

  'UDP: by a reply through the relay': async ({ probe, relayPort }) => {
    const echo = await startUdpService();
    const silent = await startUdpService(() => []);
    const via = async ({ port }: { readonly port: number }) =>
      ({ is: 'relay', port: await relayPort(port) }) as const;
    const changes = { via: await via(echo), timeoutMs: 1000 };
    // A first datagram may be lost while devices find each other.
    await eventually(async () => expect(await probe(53, UDP, changes)).toEqual(SUCCESS));
    expect(await probe(53, UDP, { via: await via(silent), timeoutMs: 300 })).toEqual(
      failure('no response within 300ms'),
    );
    // A slow machine may deliver it later.
    await eventually(() => expect(silent.received.length).toBe(1));
    echo.close();
    silent.close();
  },

  'a check in progress when the proxy ends is unknown': async ({ probe, stop }) => {
    const service = await startHttpService();
    await service.set('hanging');
    const result = probe(service.port, HTTP);
    await eventually(() => expect(service.received.length).toBe(1));
    await stop();
    expect(await result).toMatchObject({ is: 'unknown' });
    await service.close();
  },

  'a proxy that has ended is unknown for every type': async ({ probe, stop }) => {
    await stop();
    for (const settings of [HTTP, HTTPS, GRPC, TCP]) {
      expect(await probe(80, settings, { timeoutMs: 1000 })).toMatchObject({ is: 'unknown' });
    }
  },
};

/** Runs the contract on a pool; each case opens one. */
export function describeProbe(name: string, open: () => Promise<OpenedPool>): void {
  describe(name, () => {
    it.each(Object.entries(cases))('%s', async (_sentence, expectOf) => {
      const pool = await open();
      const opened = createProbe({ members: () => [pool.member], clock: systemClock });
      const { signal } = new AbortController();
      const probe: Scene['probe'] = (port, settings, changes) =>
        opened.probe(
          checkOf(port, settings, {
            timeoutMs: 60_000,
            target: { addresses: [pool.address], port },
            ...changes,
          }),
          signal,
        );
      try {
        await expectOf({ ...pool, probe });
      } finally {
        opened.close();
        await pool.close();
      }
    });
  });
}
