import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { LocatedPart } from '../../lab/parts/locate.ts';
import type { Part } from '../../lab/parts/parts.ts';
import type { BuildEvent, Builder } from '../../lab/parts/build.ts';
import { eventually } from '../support/eventually.ts';

/** An empty folder of this test, which is removed with all that is in it when the test is over. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-gateway-parts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A part of these programs that is not built yet, somewhere in a folder. */
export function missingPart(folder: string, name: string, binaries: readonly string[]): LocatedPart {
  const part: Part = {
    name,
    set: 'lab',
    from: 'go',
    needs: [],
    binaries: binaries.map(binary => ({ name: binary, package: '.', cpuSeconds: 1 })),
  };
  const source = join(folder, 'sources', name);
  mkdirSync(source, { recursive: true });
  return {
    ...{ part, binaries: part.binaries, source, version: '' },
    folder: join(folder, `${name}-0123456789abcdef`),
  };
}

/** A builder whose programs are made by a shell script with the arguments PATH, PROGRAM and PART. */
export function shellBuilder(script: string) {
  const events: BuildEvent[] = [];
  const controller = new AbortController();
  const builder: Builder = {
    commandFor: (part, binary, origin, into) => ({
      command: 'sh',
      args: ['-c', script, 'build', into, binary.name, part.name],
      environment: {},
      folder: origin.folder,
    }),
    environment: process.env,
    stop: controller.signal,
    report: event => void events.push(event),
  };
  return { builder, events, stop: () => controller.abort(new Error('stopped')) };
}

/** The paths of all files below a folder. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
}

/** The text of a file as soon as there is some. */
export function textOnceWritten(file: string): Promise<string> {
  return eventually(() => {
    const text = readIfThere(file);
    if (!text.endsWith('\n')) throw new Error(`${file} did not appear`);
    return text.trim();
  });
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Waits until a process that was ended lives no more. */
export async function untilDead(pid: number): Promise<void> {
  await eventually(() => expect(isAlive(pid)).toBe(false));
}

function isAlive(pid: number): boolean {
  const stat = readIfThere(`/proc/${pid}/stat`);
  return stat !== '' && !/\) [ZX] /.test(stat);
}

const UNPRIVILEGED = 65_534;

/** Does something without the rights of root, so that what is closed is closed. */
export async function asSomeoneElse(work: () => Promise<void> | void): Promise<void> {
  const user = process.geteuid?.() ?? UNPRIVILEGED;
  if (user === 0) process.seteuid?.(UNPRIVILEGED);
  try {
    await work();
  } finally {
    if (user === 0) process.seteuid?.(user);
  }
}
