import type { ReadResources } from '../../../../src/store/resources.ts';
import { readStandaloneSettings, startStandalone } from '../../../../src/standalone.ts';
import type { Standalone } from '../../../../src/standalone.ts';
import { freeAddresses, readMetrics, variablesOf } from '../traffic/standalone-process.ts';
import type { StandaloneOptions } from '../traffic/standalone-process.ts';

/** Standalone in the process of a test, so that the test sees what it writes. */
export interface StandaloneHere {
  /** The address of hooks and EDS, as host:port. */
  readonly address: string;
  /** The lines of its log. */
  readonly lines: readonly string[];
  start(): Promise<void>;
  /** Its objects, with their status. */
  read(): ReadResources;
  metrics(): Promise<ReadonlyMap<string, number>>;
  /** Runs its shutdown. */
  end(): Promise<void>;
}

/** Chooses its ports; does not start it. */
export async function standaloneHere(
  options: Omit<StandaloneOptions, 'log' | 'labFolder' | 'searchPath'>,
): Promise<StandaloneHere> {
  const addresses = await freeAddresses();
  const lines: string[] = [];
  const to = { write: (line: string) => void lines.push(line) };
  let running: Standalone | undefined;
  return {
    address: addresses.grpc,
    lines,
    start: async () => {
      const settings = readStandaloneSettings({ args: [], environment: variablesOf(options, addresses) });
      running = await startStandalone(settings, { version: 'test', to });
      await running.started;
    },
    read: () => {
      if (!running) throw new Error('standalone is not started');
      return running.read;
    },
    metrics: () => readMetrics(addresses),
    end: async () => {
      for (const { run } of running?.steps ?? []) await run();
      running = undefined;
    },
  };
}
