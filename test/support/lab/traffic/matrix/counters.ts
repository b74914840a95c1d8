import { readFileSync } from 'node:fs';

/** The bytes through a network interface of this process's network namespace. */
export function interfaceCounters(name: string): { readonly up: number; readonly down: number } {
  const line = readFileSync('/proc/net/dev', 'utf8')
    .split('\n')
    .find(one => one.trimStart().startsWith(`${name}:`));
  const numbers = (line ?? '')
    .slice((line ?? '').indexOf(':') + 1)
    .trim()
    .split(/\s+/)
    .map(Number);
  return { down: numbers[0] ?? 0, up: numbers[8] ?? 0 };
}
