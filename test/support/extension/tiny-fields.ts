/** A separate process with little memory: calls hooks with messages of tiny fields, and prints how many. */
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { CLUSTER, gatewayCluster } from './clusters.ts';
import { startHooks } from './hooks.ts';
import { settings, tlsSocket } from './cluster-settings.ts';

const BYTES = 2_000_000;

/** A sequence of empty fields with these numbers in turn. */
function tinyFields(...numbers: readonly number[]): Uint8Array {
  const one = concat(numbers.map(number => bytesField(number, new Uint8Array())));
  return Buffer.alloc(BYTES - (BYTES % one.length), one);
}

const name = bytesField(1, Buffer.from(CLUSTER));

const WITHIN_CLUSTERS = [8, 24, 27, 36, 43, 99].map(number => tinyFields(number, 99));
const CLUSTERS = WITHIN_CLUSTERS.map(fields => gatewayCluster([fields]));

const REQUESTS: readonly (readonly [string, Uint8Array])[] = [
  ...['PostRouteModify', 'PostClusterModify', 'PostTranslateModify'].flatMap(
    (method): (readonly [string, Uint8Array])[] => [
      [method, tinyFields(1)],
      [method, tinyFields(1, 7)],
      [method, bytesField(1, tinyFields(1))],
      [method, bytesField(1, bytesField(1, tinyFields(1)))],
    ],
  ),
  ...CLUSTERS.map(cluster => ['PostTranslateModify', bytesField(2, cluster)] as const),
  ['PostTranslateModify', bytesField(2, concat([name, tinyFields(2)]))],
];

let calls = 0;
for (const [method, request] of REQUESTS) {
  const { call } = startHooks({
    settingsOf: cluster => (cluster === CLUSTER ? settings({ defaultSocket: tlsSocket() }) : undefined),
  });
  try {
    await call(method, request);
  } catch {
    // A request may be rejected.
  }
  calls++;
}
process.send?.(calls);
