import type { Log } from '../telemetry/log.ts';
import type { TellEvents } from './events.ts';

/** Tells events as lines of a log, where there is no cluster that would keep them. */
export function loggedEvents(log: Log): TellEvents {
  return {
    tell: ({ regarding, type, reason, action, note }) => {
      const { kind, namespace, name } = regarding;
      const object = `${kind}/${namespace ?? ''}/${name}`;
      log[type === 'Warning' ? 'warn' : 'info']('event', { object, reason, action, note });
    },
  };
}
