import { lockHolder, takeLock } from '../process/lock.ts';
import { isRunning } from '../process/process.ts';
import { printSteps } from '../process/steps.ts';
import { EXIT, stopOnSignals } from './run-main.ts';
import type { StateFolder } from '../process/state-folder.ts';

/** What a command line starts and ends: the lab or the cluster. */
export type Subject<Whole> = {
  /** Its name in messages and in npm run. */
  readonly name: string;
  readonly usage: string;
  readonly folder: StateFolder<Whole>;
  /** Starts it, or returns the running one; after an abort it leaves nothing behind and fails with the signal's reason. */
  readonly start: (stop: AbortSignal, onStep: (step: string) => void) => Promise<Whole>;
  /** Its addresses, as shell assignments. */
  readonly variables: (whole: Whole) => readonly string[];
  /** What is missing for a command, with how to install it. */
  readonly missingFor?: (command: 'up' | 'down') => string | undefined;
};

/** Runs up, down, status or env, and returns the exit code. */
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
      return printStatus(subject);
    case 'env':
      return printEnvironment(subject);
    default:
      console.error(subject.usage);
      return EXIT.notPossible;
  }
}

/** The part of a subject that does not depend on its type. */
type Common = Omit<Subject<unknown>, 'start' | 'variables'>;

const PURPOSES = { up: 'starting', down: 'ending' } as const;

function lockOf({ folder }: Common): string {
  return `${folder.path}.lock`;
}

/** Only one process starts or ends it at a time. */
async function alone(
  subject: Common,
  command: 'up' | 'down',
  work: (stop: AbortSignal) => Promise<number>,
): Promise<number> {
  const missing = subject.missingFor?.(command);
  if (missing !== undefined) throw new Error(missing);
  const stop = stopOnSignals();
  const onWaiting = (pid: number) =>
    console.error(`  waiting for process ${pid}, which uses the ${subject.name}`);
  const release = await takeLock(lockOf(subject), { stop, onWaiting, purpose: PURPOSES[command] });
  if (!release) return EXIT.interrupted;
  try {
    return await work(stop);
  } finally {
    release();
  }
}

async function up<Whole>(subject: Subject<Whole>, stop: AbortSignal): Promise<number> {
  const onStep = printSteps();
  try {
    const whole = await subject.start(stop, onStep);
    onStep(`the ${subject.name} is up`);
    for (const line of subject.variables(whole)) console.log(line);
    return EXIT.done;
  } catch (error) {
    if (!stop.aborted || error !== stop.reason) throw error;
    console.error(`${subject.name}: stopped, and everything has ended`);
    return EXIT.interrupted;
  }
}

/** Not interrupted by signals. */
async function down({ folder }: Common): Promise<number> {
  console.log(`${await folder.remove()} processes ended`);
  return EXIT.done;
}

function printStatus(subject: Common): number {
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
