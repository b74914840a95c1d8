import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { select } from '../../../../src/controllers/mesh-endpoints/discovery/selectors.ts';
import { device } from '../../../support/controllers/mesh-endpoints/given-devices.ts';

/** The memory in use, in MB. */
function heapMB(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

describe('the devices that match selectors', () => {
  it('take a bounded memory, whatever the objects of a namespace select', () => {
    const devices = Array.from({ length: 10_000 }, (_, at) => device(`d${at}`, ['env-prod']));
    const before = heapMB();
    for (let at = 0; at < 200; at++) {
      const selectors = [{ key: 'env', operator: 'In', values: ['prod', `other-${at}`] } as const];
      expect(select(devices, selectors, undefined).devices).toHaveLength(10_000);
    }
    expect(heapMB() - before).toBeLessThan(25);
  });
});
