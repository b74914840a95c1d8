import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import type { LocatedPart } from '../../lab/parts/locate.ts';
import { keyOf } from '../../lab/parts/key.ts';
import { emptyFolder, missingPart } from './sample.ts';

let part: LocatedPart['part'];
let source: string;
const write = (name: string, text: string) => writeFileSync(join(source, name), text);
const key = () => keyOf(part, source, 'go1.26.0 amd64');

beforeEach(() => {
  ({ part, source } = missingPart(emptyFolder(), 'shop', ['till']));
  write('go.mod', 'module shop\n');
  write('main.go', 'package main\n');
});

it('is the same for the same content in any folder', () => {
  const before = key();
  const elsewhere = join(emptyFolder(), 'other');
  renameSync(source, elsewhere);
  const there = keyOf(part, elsewhere, 'go1.26.0 amd64');
  renameSync(elsewhere, source);
  expect([there, key()]).toEqual([before, before]);
});

it('changes with a file, its name, the version of Go and the build command', () => {
  const keys = [key(), keyOf(part, source, 'go1.26.1 amd64')];
  keys.push(keyOf({ ...part, stamps: ['a.b={version}'] }, source, 'go1.26.0 amd64'));
  keys.push(
    keyOf(
      { ...part, binaries: [{ name: 'till', package: '.', cpuSeconds: 1, cgo: true }] },
      source,
      'go1.26.0 amd64',
    ),
  );
  write('main_test.go', 'package main');
  expect(key()).toBe(keys[0]);
  write('go.sum', '');
  keys.push(key());
  write('main.go', 'package main // changed\n');
  keys.push(key());
  renameSync(join(source, 'go.sum'), join(source, 'go.total'));
  keys.push(key());
  expect(new Set(keys).size).toBe(7);
  for (const one of keys) expect(one).toMatch(/^[0-9a-f]{16}$/);
});
