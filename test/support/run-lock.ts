import { takeLock } from '../../lab/process/lock.ts';

/** Waits until no other run of these tests by this user is in progress; returns the function that releases the lock. */
export async function takeTurn(folder: string): Promise<() => void> {
  const stop = new AbortController().signal;
  const onWaiting = (pid: number) => console.error(`waiting for process ${pid} to end its tests`);
  const release = await takeLock(`${folder}-${process.getuid?.() ?? ''}`, { stop, onWaiting });
  if (!release) throw new Error('the lock was not taken');
  return release;
}
