import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** The fields of a kubeconfig that a test sets; the rest has defaults. */
export type KubeconfigOptions = {
  readonly cluster: Readonly<Record<string, unknown>>;
  readonly user?: Readonly<Record<string, unknown>>;
};

/** A kubeconfig with one context. */
export function kubeconfigText({ cluster, user }: KubeconfigOptions): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: user ? [{ name: 'u', user }] : [],
    contexts: [{ name: 'x', context: { cluster: 'c', ...(user ? { user: 'u' } : {}) } }],
    'current-context': 'x',
  });
}

/** A folder for one test, and functions that write files into it. */
export type Files = {
  readonly folder: string;
  readonly path: (name: string) => string;
  /** Returns the path. */
  readonly write: (name: string, text: string, mode?: number) => string;
  readonly read: (name: string) => string;
};

/** Makes a folder, which is removed with the test. */
export function makeFiles(): Files {
  const folder = mkdtempSync(join(tmpdir(), 'wire-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = (name: string) => join(folder, name);
  const write = (name: string, text: string, mode = 0o600) => {
    writeFileSync(path(name), text, { mode });
    return path(name);
  };
  return { folder, path, write, read: name => readFileSync(path(name), 'utf8') };
}

/** A program that counts how often it was run, and then runs a shell script. */
export function writeProgram(files: Files, name: string, script: string): () => number {
  const runs = files.write(`${name}.runs`, '');
  files.write(
    name,
    `#!/bin/sh\nprintf x >> '${runs}'\nruns=$(wc -c < '${runs}' | tr -d ' ')\n${script}\n`,
    0o700,
  );
  return () => readFileSync(runs).length;
}
