import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { relayHelp } from '../../src/relay.ts';
import { PROJECT } from '../support/lab/command-line.ts';

const page = readFileSync(join(PROJECT, 'docs', 'kubernetes.md'), 'utf8');
const [, section = ''] = /^## The relay\n(.*?)^## /ms.exec(page) ?? [];
const documented = [
  ...section.matchAll(/^\| `([A-Z_]+)` *\| `(--[-a-z]+)` *\| (?:`([^`]*)`)? *\| (.*?) *\|$/gm),
].map(([, name, flag, preset = '', what]) => ({ name, flag, preset, what }));
const known = [
  ...relayHelp().matchAll(/^ {2}(--[-a-z]+) +([A-Z_]+)\n {6}(.*?)(?: \(default ([^()]+)\))?$/gm),
].map(([, flag, name, what, preset = '']) => ({ name, flag, preset, what }));

describe('the settings of the relay in docs/kubernetes.md', () => {
  it('are those of the command, all of them, with their defaults', () => {
    expect(known.length).toBeGreaterThan(5);
    expect(documented).toEqual(known);
  });
});
