import type { Activities } from './activity.ts';
import { activityProfile, activityText } from './profile-activity.ts';
import { profileCpu } from './profile-cpu.ts';
import type { HeapWatch } from './profile-heap.ts';
import { plainText } from './route.ts';
import type { Answer, Question, Route } from './route.ts';

/** What profiles are taken of. */
export type Profiled = { readonly heap: HeapWatch; readonly activities: Activities };

const ROOT = '/debug/pprof';

/** Each profile, and what its parameters are. */
const PROFILES = {
  heap: 'where the memory that is in use was allocated; ?gc=1 collects garbage first',
  profile: 'what the process computes; ?seconds=30, at most 60, one at a time',
  goroutine: 'what runs and waits; ?debug=1 for a text',
} as const;

/** The profiles that `go tool pprof` asks for, and an index of them; hints alone where profiling is off. */
export function pprofRoutes(profiled: Profiled | 'off'): readonly Route[] {
  const names = ['', '/', ...Object.keys(PROFILES).map(name => `/${name}`)];
  if (profiled === 'off') {
    const hint = plainText(404, 'profiling is off: start the process with PPROF=on\n');
    return names.map(name => ({ path: `${ROOT}${name}`, answer: () => hint }));
  }
  const { heap, activities } = profiled;
  const answers: Readonly<Record<keyof typeof PROFILES, Route['answer']>> = {
    heap: oneAtATime(async ({ query }) => {
      const isCollected = query.has('gc') && query.get('gc') !== '0';
      return file('heap', await heap.profile(isCollected ? 'collection' : 'now'));
    }),
    profile: oneAtATime(cpu),
    goroutine: async ({ query }) =>
      Number(query.get('debug') ?? 0) > 0
        ? plainText(200, activityText(activities))
        : file('goroutine', await activityProfile(activities)),
  };
  const routes = Object.entries(answers).map(([name, answer]) => ({ path: `${ROOT}/${name}`, answer }));
  return [...['', '/'].map(end => ({ path: `${ROOT}${end}`, answer: index })), ...routes];
}

function index(): Answer {
  const lines = Object.entries(PROFILES).map(([name, what]) => `${ROOT}/${name}\n    ${what}`);
  return plainText(200, `${lines.join('\n')}\n`);
}

function file(name: string, body: Uint8Array): Answer {
  const headers = { 'content-disposition': `attachment; filename="${name}.pb.gz"` };
  return { status: 200, type: 'application/octet-stream', body, headers };
}

const [USUAL_SECONDS, MOST_SECONDS] = [30, 60];

async function cpu({ query, signal }: Question): Promise<Answer> {
  const seconds = Number(query.get('seconds') ?? USUAL_SECONDS);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > MOST_SECONDS) {
    return plainText(400, `seconds must be a whole number from 1 to ${MOST_SECONDS}\n`);
  }
  return file('profile', await profileCpu(seconds * 1000, signal));
}

/** Profiles cost time, and two CPU profiles at a time would be in each other's way. */
function oneAtATime(
  answer: (question: Question) => Promise<Answer>,
): (question: Question) => Promise<Answer> {
  let isBusy = false;
  return question => {
    if (isBusy) {
      return Promise.resolve(
        plainText(409, 'this profile is being taken already; ask again when it is done\n'),
      );
    }
    isBusy = true;
    return answer(question).finally(() => {
      isBusy = false;
    });
  };
}
