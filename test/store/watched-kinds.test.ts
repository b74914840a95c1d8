import { expect, it } from 'vitest';
import { operatorTrafficKinds, servingKinds } from '../../src/traffic/access.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { Tracking } from '../../src/store/tracking.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { trafficValues } from '../../src/store/traffic/values.ts';

const COMMON = { dataPath: 'Proxy', clusterEncoding: '', trustNamespace: 'mesh-system' } as const;
const SERVING = { ...COMMON, settingsFrom: 'MeshBinding', podNamespace: 'mesh-system' } as const;
const FOR_OPERATOR = { settingsFrom: 'MeshGateway', readsBackends: false, readsServices: true } as const;

it.each([
  ['the extension server', servingKinds, SERVING],
  ['the operator', operatorTrafficKinds, { ...COMMON, ...FOR_OPERATOR }],
])('%s watches what its traffic is derived from', (_process, kinds, options) => {
  const tracking = new Tracking(new ResourceStore(trafficIndexes, () => undefined));
  expect([...new Set(trafficValues(tracking, options).reads)].sort()).toEqual(
    [...kinds].filter(kind => kind !== 'MeshGateway').sort(),
  );
});
