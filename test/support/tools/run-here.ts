import { vi } from 'vitest';
import { errorText } from '../../../src/tools/usage.ts';

/** The exit code of a command, and what it printed. */
export type Run = { readonly status: number | null; readonly out: string; readonly err: string };

/** Runs a command in this process, as if in a folder; an error is printed as by `mesh-gateway`. One runs at a time. */
export async function runHere(
  folder: string,
  command: () => Promise<number>,
  { name, help }: { readonly name: string; readonly help: string },
): Promise<Run> {
  const texts = { out: '', err: '' };
  const write = (to: keyof typeof texts) => (text: unknown) => {
    texts[to] += String(text);
    return true;
  };
  const print = (to: keyof typeof texts) => (text: unknown) => void write(to)(`${String(text)}\n`);
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(write('out')),
    vi.spyOn(console, 'log').mockImplementation(print('out')),
    vi.spyOn(console, 'error').mockImplementation(print('err')),
  ];
  const before = process.cwd();
  process.chdir(folder);
  try {
    return { status: await command(), ...texts };
  } catch (error) {
    print('err')(`mesh-gateway: ${errorText(error, { name, help })}`);
    return { status: 2, ...texts };
  } finally {
    process.chdir(before);
    for (const spy of spies) spy.mockRestore();
  }
}
