import { describe, expect, it } from 'vitest';
import { loggedEvents } from '../../src/resources/logged-events.ts';
import { createLog } from '../../src/telemetry/log.ts';

const regarding = { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'web' };

describe('events where there is no cluster', () => {
  it('are lines of the log, and warnings are warnings', () => {
    const lines: string[] = [];
    const events = loggedEvents(createLog({ level: 'info', to: { write: line => lines.push(line) } }));
    events.tell({ regarding, type: 'Normal', reason: 'Seen', action: 'See', note: 'it was seen' });
    events.tell({ regarding, type: 'Warning', reason: 'Lost', action: 'See', note: 'with token=abcdefgh' });
    expect(lines.map(line => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'info', msg: 'event', object: 'Service/default/web', reason: 'Seen', note: 'it was seen' },
      { level: 'warn', msg: 'event', object: 'Service/default/web', reason: 'Lost', action: 'See' },
    ]);
    expect(lines.join('')).not.toContain('abcdefgh');
  });
});
