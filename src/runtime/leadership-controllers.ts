import type { DrainLimits, RunningController } from './controller.ts';
import type { Leading } from './leading.ts';

/** The controllers of a leader: their runs have time to end where the process stops, and none where leadership is lost. */
export function leadControllers(controllers: readonly RunningController[], limits: DrainLimits): Leading {
  return {
    end: async because => {
      const patience = because === 'lost' ? { ...limits, endMs: 0 } : limits;
      const left = (await Promise.all(controllers.map(controller => controller.drain(patience)))).flat();
      if (left.length > 0) throw new Error(`reconciles did not end: ${left.slice(0, 10).join(', ')}`);
    },
  };
}
