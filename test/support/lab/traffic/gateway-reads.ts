import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { readConfigDump } from '../../../../lab/gateway/envoy.ts';
import type { Gateway } from '../../../../lab/state.ts';
import { until } from '../../../../lab/process/wait.ts';

/** Envoy Gateway takes 50 ms and more for each object of a folder in which a file has changed. */
export const READ_WITHIN_MS = 600_000;

/** Makes a change, and waits until Envoy Gateway has read the generated folder after it. */
export async function untilRead(
  { log }: Pick<Gateway, 'log'>,
  change: () => void,
  timeoutMs = READ_WITHIN_MS,
): Promise<void> {
  const reads = readsAfterNow({ log });
  change();
  await reads.until(1, timeoutMs);
}

/**
 * Follows what Envoy Gateway reads from now on. It handles the changes of files in sequence, and reads all files at
 * each: so it may have read a file before it handles the change of that file, and then reads the same again.
 */
export interface Reads {
  /** How many changes it has handled. */
  handled(): number;
  /** Waits until it has handled `count`. */
  until(count: number, timeoutMs?: number): Promise<void>;
}

export function readsAfterNow({ log }: Pick<Gateway, 'log'>): Reads {
  const lines = linesAfter(log, statSync(log).size);
  let [handled, isReading] = [0, false];
  const handledChanges = () => {
    for (const line of lines()) {
      if (line.includes('reload resources finished') && isReading) handled++;
      isReading = line.includes('file changed') || (isReading && !line.includes('reload resources finished'));
    }
    return handled;
  };
  return {
    handled: handledChanges,
    until: async (count, timeoutMs = READ_WITHIN_MS) => {
      const isHandled = (note: (seen: string) => void) => {
        note(`${handledChanges()} of ${count}`);
        return Promise.resolve(handled >= count);
      };
      await until('Envoy Gateway to read what has changed', isHandled, { timeoutMs });
    },
  };
}

/** The lines that were added to a log since the last call. */
function linesAfter(log: string, size: number): () => readonly string[] {
  let [at, rest] = [size, ''];
  return () => {
    const bytes = Buffer.alloc(statSync(log).size - at);
    const file = openSync(log, 'r');
    try {
      at += readSync(file, bytes, 0, bytes.length, at);
    } finally {
      closeSync(file);
    }
    const lines = (rest + bytes.toString()).split('\n');
    rest = lines.pop() ?? '';
    return lines;
  };
}

/** An active cluster of Envoy's config dump: its fields, their version, and the time of the update. */
export type ActiveCluster = {
  readonly version_info: string;
  readonly last_updated: string;
  readonly cluster: Readonly<Record<string, unknown>> & { readonly name: string };
};

/** The active clusters in an Envoy's config dump. */
export async function activeClusters({ admin }: Pick<Gateway, 'admin'>): Promise<readonly ActiveCluster[]> {
  const parts = await readConfigDump(admin);
  return parts.flatMap(part => (part['dynamic_active_clusters'] ?? []) as readonly ActiveCluster[]);
}

/** An active cluster in an Envoy's config dump. */
export async function activeCluster(gateway: Pick<Gateway, 'admin'>, name: string): Promise<ActiveCluster> {
  const found = (await activeClusters(gateway)).find(({ cluster }) => cluster.name === name);
  if (!found) throw new Error(`Envoy knows no cluster ${name}`);
  return found;
}

/** A counter or gauge of an Envoy. */
export async function statOf({ admin }: Pick<Gateway, 'admin'>, name: string): Promise<number> {
  const text = await (await fetch(`${admin}/stats?filter=^${name.replaceAll('.', '\\.')}$`)).text();
  const [, value] = /^[^:]+: (\d+)\s*$/.exec(text) ?? [];
  if (value === undefined) throw new Error(`Envoy has no statistic ${name}, but: ${text.slice(0, 200)}`);
  return Number(value);
}
