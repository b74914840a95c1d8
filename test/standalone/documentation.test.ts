import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { standaloneHelp } from '../../src/standalone.ts';
import { PROJECT } from '../support/lab/command-line.ts';

const text = readFileSync(join(PROJECT, 'docs', 'standalone.md'), 'utf8');
const documented = [
  ...text.matchAll(/^\| `([A-Z_]+)` *\| `(--[-a-z]+)` *\| (?:`([^`]*)`)? *\| (.*?) *\|$/gm),
].map(([, name, flag, preset = '', what]) => ({ name, flag, preset, what }));
const help = standaloneHelp({ XDG_STATE_HOME: '~/.local/state' });
const known = [...help.matchAll(/^ {2}(--[-a-z]+) +([A-Z_]+)\n {6}(.*?)(?: \(default ([^()]+)\))?$/gm)].map(
  ([, flag, name, what, preset = '']) => ({ name, flag, preset, what }),
);

describe('the settings in docs/standalone.md', () => {
  it('are those of the command, all of them, with their defaults', () => {
    expect(known.length).toBeGreaterThan(10);
    expect(documented).toEqual(known);
  });
});
