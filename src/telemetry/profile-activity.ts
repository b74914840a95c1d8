import type { Activities, Activity } from './activity.ts';
import { encodeProfile } from './profile.ts';
import type { Frame } from './profile.ts';
import { withoutSecrets } from './secrets.ts';

const HONESTLY = 'Node has no goroutines: these are the things that run or wait in this process instead.';

const MOST_LINES = 1000;

/** What runs and waits, in words. */
export function activityText(activities: Activities): string {
  const sections = [...activities.list()].map(([name, list]) => {
    const lines = counted(list).map(({ text, count }) => `  ${count > 1 ? `${count} x ` : ''}${text}`);
    const more = lines.length > MOST_LINES ? [`  and ${lines.length - MOST_LINES} more lines`] : [];
    return [`${name}: ${list.length}`, ...lines.slice(0, MOST_LINES), ...more].join('\n');
  });
  return `${[HONESTLY, ...sections].join('\n\n')}\n`;
}

/** Equal lines become one; what has been going on longest comes first. */
function counted(list: readonly Activity[]): readonly { readonly text: string; readonly count: number }[] {
  const counts = new Map<string, number>();
  const byAge = list.toSorted((a, b) => (b.forMs ?? 0) - (a.forMs ?? 0));
  for (const activity of byAge) {
    const text = lineOf(activity);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => ({ text, count }));
}

function lineOf({ what, state, forMs }: Activity): string {
  const age = forMs === undefined ? '' : ` for ${(forMs / 1000).toFixed(1)} s`;
  const text = what === state ? what : `${what} ${state}`;
  return `${withoutSecrets(text).replace(/\s+/g, ' ')}${age}`;
}

/** The same as a pprof profile: how many of what, under the part that says so. */
export function activityProfile(activities: Activities): Promise<Uint8Array> {
  const samples = [...activities.list()].flatMap(([name, list]) => {
    const states = new Set(list.map(({ state }) => state));
    return [...states].map(state => ({
      stack: [frame(withoutSecrets(state)), frame(name)],
      values: [list.filter(activity => activity.state === state).length],
    }));
  });
  return encodeProfile({
    kinds: [{ type: 'goroutine', unit: 'count' }],
    samples,
    period: { type: 'goroutine', unit: 'count', every: 1 },
    timeMs: Date.now(),
    comments: [HONESTLY],
  });
}

function frame(name: string): Frame {
  return { name, file: '', startLine: 0, line: 0 };
}
