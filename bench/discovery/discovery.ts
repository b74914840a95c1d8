import { startControlApi } from '../../lab/control-api/control-api.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import type { Bench, Figure } from '../figures.ts';
import { changeFigures, CHANGES_MS } from './changes.ts';
import { deviceOptions, DEVICES } from './objects.ts';
import { passFigures } from './pass.ts';

/**
 * Measures what it costs to find endpoints by the tags of devices, and how soon Envoys have them. The simulated control API
 * is in the process of the bench.
 */
export const discovery: Bench = { duration: () => ({ atLeastMs: CHANGES_MS }), run: discoveryFigures };

async function discoveryFigures(onStep: OnStep): Promise<readonly Figure[]> {
  onStep(`a control API with ${DEVICES} devices`);
  const api = await startControlApi();
  try {
    for (let index = 0; index < DEVICES; index++) api.addDevice(deviceOptions(index));
    onStep('passes over all devices');
    const passes = await passFigures(api);
    return [...passes, ...(await changeFigures(api, onStep))];
  } finally {
    await api.close();
  }
}
