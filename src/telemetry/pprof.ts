import type { Activities, Activity } from './activity.ts';
import { plainText } from './http.ts';
import type { HttpResponse, HttpRequest, Route } from './http.ts';
import { profileCpu } from './profile-cpu.ts';
import type { HeapWatch } from './profile-heap.ts';
import { withoutSecrets } from './secrets.ts';

/** The sources of profiles. */
export type Profiled = { readonly heap: HeapWatch; readonly activities: Activities };

const ROOT = '/debug/pprof';

/** The profiles and their parameters. */
const PROFILES = {
  heap: 'where the memory that is in use was allocated; ?gc=1 collects garbage first',
  profile: 'what the process computes; ?seconds=30, at most 60, one at a time',
  goroutine: 'activities of the process, as text for any ?debug=',
} as const;

/** The routes of pprof: profiles for `go tool pprof`, activities, and an index; only hints where pprof is off. */
export function pprofRoutes(profiled: Profiled | 'off'): readonly Route[] {
  const names = ['', '/', ...Object.keys(PROFILES).map(name => `/${name}`)];
  if (profiled === 'off') {
    const hint = plainText(404, 'profiling is off: start the process with PPROF=on\n');
    return names.map(name => ({ path: `${ROOT}${name}`, handle: () => hint }));
  }
  const { heap, activities } = profiled;
  const handlers: Readonly<Record<keyof typeof PROFILES, Route['handle']>> = {
    heap: oneAtATime(async ({ query }) => {
      const isCollected = query.has('gc') && query.get('gc') !== '0';
      return file('heap', await heap.profile(isCollected ? 'collection' : 'now'));
    }),
    profile: oneAtATime(cpu),
    goroutine: () => plainText(200, activityText(activities)),
  };
  const routes = Object.entries(handlers).map(([name, handle]) => ({ path: `${ROOT}/${name}`, handle }));
  return [...['', '/'].map(end => ({ path: `${ROOT}${end}`, handle: index })), ...routes];
}

function index(): HttpResponse {
  const lines = Object.entries(PROFILES).map(([name, what]) => `${ROOT}/${name}\n    ${what}`);
  return plainText(200, `${lines.join('\n')}\n`);
}

function file(name: string, body: Uint8Array): HttpResponse {
  const headers = { 'content-disposition': `attachment; filename="${name}.pb.gz"` };
  return { status: 200, type: 'application/octet-stream', body, headers };
}

const [USUAL_SECONDS, MAX_SECONDS] = [30, 60];

async function cpu({ query, signal }: HttpRequest): Promise<HttpResponse> {
  const seconds = Number(query.get('seconds') ?? USUAL_SECONDS);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_SECONDS) {
    return plainText(400, `seconds must be a whole number from 1 to ${MAX_SECONDS}\n`);
  }
  return file('profile', await profileCpu(seconds * 1000, signal));
}

/** Takes one profile at a time: they cost time, and two CPU profiles would disturb each other. */
function oneAtATime(
  handle: (request: HttpRequest) => Promise<HttpResponse>,
): (request: HttpRequest) => Promise<HttpResponse> {
  let isBusy = false;
  return request => {
    if (isBusy) {
      return Promise.resolve(plainText(409, 'this profile is already being taken; retry when it is done\n'));
    }
    isBusy = true;
    return handle(request).finally(() => {
      isBusy = false;
    });
  };
}

const HONESTLY = 'Node has no goroutines: these are the things that run or wait in this process instead.';

const MAX_LINES = 1000;

/** The activities as text. */
function activityText(activities: Activities): string {
  const sections = [...activities.list()].map(([name, list]) => {
    const lines = counted(list).map(({ text, count }) => `  ${count > 1 ? `${count} x ` : ''}${text}`);
    const more = lines.length > MAX_LINES ? [`  and ${lines.length - MAX_LINES} more lines`] : [];
    return [`${name}: ${list.length}`, ...lines.slice(0, MAX_LINES), ...more].join('\n');
  });
  return `${[HONESTLY, ...sections].join('\n\n')}\n`;
}

/** Groups equal lines; the longest activity comes first. */
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
