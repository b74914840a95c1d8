import { messageOf } from '../process/errors.ts';

/** The status codes with which the command lines of the lab end. */
export const EXIT = { done: 0, notDone: 1, notPossible: 2, interrupted: 130 } as const;

/** Runs a command, prints its error, and exits: some polling of what failed or was ended would continue for a while. */
export async function runMain(name: string, main: () => Promise<number>): Promise<never> {
  process.exit(
    await main().catch((error: unknown) => {
      console.error(`${name}: ${messageOf(error)}`);
      return EXIT.notPossible;
    }),
  );
}

/** Returns an AbortSignal for SIGINT, SIGTERM and SIGHUP, which then do not end this process. */
export function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => controller.abort(new Error('stopped')));
  return controller.signal;
}
