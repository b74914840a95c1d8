import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../lab/process/ports.ts';
import { productCommand } from '../bundled.ts';
import type { Figure } from '../figures.ts';
import { startProgram } from '../kubernetes/programs.ts';
import { followEndpoints } from './eds.ts';
import type { EdsClient } from './eds.ts';
import { awaitHealthy } from './load.ts';
import { addressesOf, checkedObject, envoyClusterTo, GATEWAY, NAMESPACE, PORT, routeTo } from './objects.ts';
import { createAll } from './operator.ts';
import type { Installation } from './operator.ts';

const OBJECTS = 30;
const INTERVAL_MS = 1000;
const THRESHOLD = 2;
const ROUNDS = 2;

/** How long the flips take that are decided by checks. */
export const FLIPS_MS = 2 * ROUNDS * THRESHOLD * INTERVAL_MS;

/** The time from a change of a service, or of the answer that decided, until an Envoy has the new health. */
type Flip = { readonly beyondMs: number; readonly afterAnswerMs: number };

/**
 * Measures how soon an Envoy has the health of a service that began to fail or to work: through the status that the
 * operator writes to the API server, and an extension server that watches it.
 */
export async function flipFigures(installation: Installation): Promise<readonly Figure[]> {
  const names = Array.from({ length: OBJECTS }, (_, index) => `flip-${index}`);
  const { client, kubeconfig } = installation.server;
  await createAll(client, names.map(routeTo));
  await createAll(
    client,
    names.map((name, index) => checkedObject(objectOf(name, index))),
  );
  const [grpc = 0, metrics = 0, health = 0] = await freePorts(3);
  const server = startProgram([
    ...productCommand(installation.product),
    'extension-server',
    `--kubeconfig=${kubeconfig}`,
    `--grpc-address=127.0.0.1:${grpc}`,
    `--metrics-address=127.0.0.1:${metrics}`,
    `--health-address=127.0.0.1:${health}`,
    '--log-level=warn',
  ]);
  try {
    await awaitHealthy(installation, 2 * OBJECTS);
    const isReady = async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok;
    while (!(await isReady().catch(() => false))) await sleep(100);
    const eds = followEndpoints(`127.0.0.1:${grpc}`, `${NAMESPACE}/${GATEWAY}`, names.map(envoyClusterTo));
    const flips = await measure(installation, eds, names);
    eds.close();
    return figuresOf(flips);
  } finally {
    await server.stop();
  }
}

/** Only its first endpoint flips: an object without healthy endpoints is another case. */
function objectOf(name: string, index: number) {
  const healthCheck = {
    interval: `${INTERVAL_MS / 1000}s`,
    healthyThreshold: THRESHOLD,
    unhealthyThreshold: THRESHOLD,
  };
  return { name, addresses: addressesOf(index, 2), healthCheck };
}

async function measure(
  installation: Installation,
  eds: EdsClient,
  names: readonly string[],
): Promise<readonly Flip[]> {
  const flips: Flip[] = [];
  for (let round = 0; round < 2 * ROUNDS; round++) {
    const isFailing = round % 2 === 0;
    flips.push(
      ...(await Promise.all(
        names.map(async (name, index) => {
          // At any time between two checks.
          await sleep((index * INTERVAL_MS) / OBJECTS);
          return flip(installation, eds, { name, index, isFailing });
        }),
      )),
    );
  }
  return flips;
}

type FlipOptions = { readonly name: string; readonly index: number; readonly isFailing: boolean };

async function flip({ requestProxy }: Installation, eds: EdsClient, options: FlipOptions): Promise<Flip> {
  const { name, index, isFailing } = options;
  const [address = ''] = addressesOf(index, 1);
  await eds.until(envoyClusterTo(name), address, !isFailing);
  const target = `${address}:${PORT}`;
  const { changedAtMs } = await requestProxy({ target, status: isFailing ? 503 : 200 });
  const atMs = await eds.until(envoyClusterTo(name), address, isFailing);
  const { answeredAtMs } = await requestProxy({ target });
  const decidedAtMs = answeredAtMs[THRESHOLD - 1];
  if (decidedAtMs === undefined || decidedAtMs > atMs)
    throw new Error(`${name} changed before it was decided`);
  return { beyondMs: atMs - changedAtMs - INTERVAL_MS * THRESHOLD, afterAnswerMs: atMs - decidedAtMs };
}

function figuresOf(flips: readonly Flip[]): readonly Figure[] {
  if (flips.length < 50) throw new Error(`only ${flips.length} flips`);
  const at = (share: number, value: (flip: Flip) => number) => {
    const sorted = flips.map(value).sort((one, other) => one - other);
    return sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
  };
  const name = `a service that fails or works again to Envoy (${flips.length} flips)`;
  return [
    {
      name: `${name}, beyond interval x threshold, p99`,
      value: at(0.99, flip => flip.beyondMs),
      unit: 'ms',
      aim: 500,
    },
    {
      name: `${name}, after the answer that decided, p50`,
      value: at(0.5, flip => flip.afterAnswerMs),
      unit: 'ms',
    },
    {
      name: `${name}, after the answer that decided, p99`,
      value: at(0.99, flip => flip.afterAnswerMs),
      unit: 'ms',
    },
  ];
}
