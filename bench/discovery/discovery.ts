import { startControlApi } from '../../lab/control-api/control-api.ts';
import type { Figure } from '../figures.ts';
import { changeFigures } from './changes.ts';
import { deviceOptions, DEVICES } from './objects.ts';
import { passFigures } from './pass.ts';

/**
 * Measures what it costs to find endpoints by the tags of devices, and how soon Envoys have them. The simulated control API
 * is in the process of the bench.
 */
export async function discovery(): Promise<readonly Figure[]> {
  const api = await startControlApi();
  try {
    for (let index = 0; index < DEVICES; index++) api.addDevice(deviceOptions(index));
    return [...(await passFigures(api)), ...(await changeFigures(api))];
  } finally {
    await api.close();
  }
}
