import { freePorts } from '../../lab/process/ports.ts';
import { startProgram } from '../bench-process.ts';
import type { BenchProcess } from '../bench-process.ts';

/** What a relay of the bench is started with: all ports have the same target. */
export type RelayProgramOptions = {
  readonly socks: { readonly host: string; readonly port: number };
  readonly target: { readonly address: string; readonly port: number };
  readonly ports: readonly number[];
  readonly maxAssociations: number;
};

/** Datagrams at a rate, or as many as are answered with a number of each client on the way. */
export type Load = { readonly bytes: number; readonly seconds: number } & (
  { readonly rate: number } | { readonly window: number }
);

export type LoadResult = { readonly sent: number; readonly received: number; readonly tookMs: number };

/** Clients, the relay, and a proxy that echoes. */
export type Scene = {
  readonly proxy: BenchProcess;
  readonly relay: BenchProcess;
  readonly generator: BenchProcess;
  readonly end: () => Promise<void>;
};

const TARGET = { address: '100.64.0.2', port: 7 };

/** Starts a relay with free ports, which clients use in turn. */
export async function startScene(options: {
  readonly portCount: number;
  readonly clients: number;
}): Promise<Scene> {
  const ports = await freePorts(options.portCount);
  const proxy = await startProgram('relay/proxy-program', '');
  const socks = { host: '127.0.0.1', ...(proxy.first as { readonly port: number }) };
  const relayOptions: RelayProgramOptions = { socks, target: TARGET, ports, maxAssociations: 4096 };
  const relay = await startProgram('relay/relay-program', JSON.stringify(relayOptions));
  const generator = await startProgram(
    'relay/generator-program',
    JSON.stringify({ ports, clients: options.clients }),
  );
  return {
    proxy,
    relay,
    generator,
    end: async () => {
      for (const each of [generator, relay, proxy]) await each.end();
    },
  };
}
