import type { ControlApi } from '../../lab/control-api/control-api.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import type { Device } from '../../src/control/control.ts';
import { openTailnets } from '../../src/control/tailnets.ts';
import { discover } from '../../src/controllers/mesh-endpoints/discovery/discover.ts';
import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { DEVICES, OBJECTS, selectingObject, storedSpec } from './objects.ts';

const PASSES = 7;

/** Measures how long it takes to find the endpoints of all objects among all devices. */
export async function passFigures(api: ControlApi): Promise<readonly Figure[]> {
  const devices = await listDevices(api);
  const passMs = (selects: 'one app' | 'all devices', found: number, matching: number): number => {
    const specs = Array.from({ length: OBJECTS }, (_, at) => storedSpec(selectingObject(at, selects)));
    const took = Array.from({ length: PASSES }, (_, pass) => {
      // As after a list in which one device is another: the devices that do not change are the same objects.
      const [first, ...others] = devices;
      const listed = first ? [{ ...first, hostname: `changed-${pass}` }, ...others] : [];
      const { user, system } = process.cpuUsage();
      const all = specs.map(spec => discover(spec, listed, undefined));
      const used = process.cpuUsage({ user, system });
      if (all.some(({ endpoints, matched }) => endpoints.length !== found || matched !== matching))
        throw new Error(`not ${found} endpoints of ${matching} devices`);
      return (used.user + used.system) / 1000;
    });
    return median(took);
  };
  const name = `a pass over ${DEVICES} devices, one of which has changed, by ${OBJECTS} objects`;
  return [
    {
      name: `${name} that find ${DEVICES / OBJECTS} each`,
      unit: 'ms of CPU',
      aim: 250,
      value: passMs('one app', DEVICES / OBJECTS, DEVICES / OBJECTS),
    },
    {
      name: `${name} that all of them match`,
      unit: 'ms of CPU',
      value: passMs('all devices', 1000, DEVICES),
    },
  ];
}

/** The devices as an operator has them. */
async function listDevices(api: ControlApi): Promise<readonly Device[]> {
  const tailnets = openTailnets({
    clock: systemClock,
    now: () => new Date(),
    random: Math.random,
    userAgent: 'bench',
  });
  const { id, secret } = api.addClient(['devices:core:read']);
  const source = {
    name: 'example',
    intervalMs: 30_000,
    credentials: { kind: 'oauth', clientId: id, clientSecret: secret },
    endpoint: { url: api.url, scopes: [], requestsPerSecond: 5, burst: 10 },
  } as const;
  try {
    // On a busy machine the list may take longer than its callers wait.
    for (let left = 60; left > 0; left--) {
      const { devices } = await tailnets.observe(source);
      if (devices?.length === DEVICES) return devices;
    }
    throw new Error(`no list of ${DEVICES} devices`);
  } finally {
    tailnets.close();
  }
}
