import { lockHolder, takeLock } from '../process/lock.ts';
import { isRunning } from '../process/process.ts';
import { EXIT, stopOnSignals } from './run-main.ts';
import type { StateFolder } from '../process/state-folder.ts';

/** What a command line starts as a whole, and ends: the lab or the cluster. */
export type Subject<Whole> = {
  /** What it is called, in sentences and in npm run. */
  readonly name: string;
  readonly usage: string;
  readonly folder: StateFolder<Whole>;
  /** Starts it, or gives the one that runs; when it is told to stop it leaves nothing, and fails with the signal's reason. */
  readonly start: (stop: AbortSignal, tell: (step: string) => void) => Promise<Whole>;
  /** Where everything of it is, as lines for a shell. */
  readonly variables: (whole: Whole) => readonly string[];
  /** What keeps a command from working here, with the way out. */
  readonly lackFor?: (command: 'up' | 'down') => string | undefined;
};

/** Does what all command lines of the lab do: up, down, status and env; gives the status code. */
export async function runCommand<Whole>(
  subject: Subject<Whole>,
  command: string | undefined,
): Promise<number> {
  switch (command) {
    case 'up':
      return alone(subject, command, stop => up(subject, stop));
    case 'down':
      return alone(subject, command, () => down(subject));
    case 'status':
      return tellStatus(subject);
    case 'env':
      return printEnvironment(subject);
    default:
      console.error(subject.usage);
      return EXIT.notPossible;
  }
}

/** What can be said of it without knowing what it consists of. */
type Common = Omit<Subject<unknown>, 'start' | 'variables'>;

const PURPOSES = { up: 'starting', down: 'ending' } as const;

function lockOf({ folder }: Common): string {
  return `${folder.path}.lock`;
}

/** Starting and ending must not meet, wherever they were called. */
async function alone(
  subject: Common,
  command: 'up' | 'down',
  work: (stop: AbortSignal) => Promise<number>,
): Promise<number> {
  const lack = subject.lackFor?.(command);
  if (lack !== undefined) throw new Error(lack);
  const stop = stopOnSignals();
  const tellWaiting = (pid: number) =>
    console.error(`  waiting for process ${pid} to be done with the ${subject.name}`);
  const release = await takeLock(lockOf(subject), { stop, tellWaiting, purpose: PURPOSES[command] });
  if (!release) return EXIT.interrupted;
  try {
    return await work(stop);
  } finally {
    release();
  }
}

async function up<Whole>(subject: Subject<Whole>, stop: AbortSignal): Promise<number> {
  const startMs = performance.now();
  const tell = (step: string) =>
    console.error(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${step}`);
  try {
    const whole = await subject.start(stop, tell);
    tell(`the ${subject.name} is up`);
    for (const line of subject.variables(whole)) console.log(line);
    return EXIT.done;
  } catch (error) {
    if (!stop.aborted || error !== stop.reason) throw error;
    console.error(`${subject.name}: stopped, and nothing is left of it`);
    return EXIT.interrupted;
  }
}

/** Once begun it goes on to its end, whatever signal comes. */
async function down({ folder }: Common): Promise<number> {
  console.log(`${await folder.remove()} processes ended`);
  return EXIT.done;
}

function tellStatus(subject: Common): number {
  const records = subject.folder.processes();
  const width = Math.max(...records.map(({ name }) => name.length)) + 2;
  for (const record of records) {
    const state = isRunning(record) ? `runs (${record.pid})` : 'has ended';
    console.log(`${record.name.padEnd(width)}${state.padEnd(18)}${record.log}`);
  }
  const { isUp, sentence } = stateOf(subject);
  console.log(sentence);
  return isUp ? EXIT.done : EXIT.notDone;
}

function printEnvironment<Whole>(subject: Subject<Whole>): number {
  const whole = subject.folder.running();
  if (!whole) {
    console.error(stateOf(subject).sentence);
    return EXIT.notDone;
  }
  for (const line of subject.variables(whole)) console.log(line);
  return EXIT.done;
}

function stateOf(subject: Common): { readonly isUp: boolean; readonly sentence: string } {
  const { name, folder } = subject;
  const isUp = folder.running() !== undefined;
  const holder = lockHolder(lockOf(subject));
  if (holder) return { isUp, sentence: `the ${name} is ${holder.purpose} (process ${holder.pid})` };
  const sentence = isUp ? `the ${name} is up` : `the ${name} is down: npm run ${name} -- up starts it`;
  return { isUp, sentence };
}
