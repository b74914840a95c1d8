import { FRONT_KEYS, parseCallers, parseDestinations } from '../api/front.ts';
import { targetsVersion } from '../api/relay-targets.ts';
import type { Log } from '../telemetry/log.ts';
import type { Front } from './front.ts';

/** How a front serves by the lists in a ConfigMap. */
export type FrontLists = {
  /** The version of the lists; undefined before it has any, and serves no caller. */
  readonly version: () => string | undefined;
  readonly onData: (data: Readonly<Record<string, string>>) => void;
};

/** Updates a front by its lists; without lists, as earlier operators write the ConfigMap, the last ones stay. */
export function followLists(front: Pick<Front, 'update'>, log: Log): FrontLists {
  let current: string | undefined;
  return {
    version: () => current,
    onData: ({ [FRONT_KEYS.callers]: callers, [FRONT_KEYS.destinations]: destinations }) => {
      if (callers === undefined || destinations === undefined) return;
      const version = targetsVersion(`${callers}\n${destinations}`);
      if (version === current) return;
      current = version;
      front.update({
        callers: parseCallers(callers, ignored => log.warn('ignored lines of callers', ignored)),
        destinations: parseDestinations(destinations, ignored =>
          log.warn('ignored lines of destinations', ignored),
        ),
      });
    },
  };
}
