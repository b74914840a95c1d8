import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { standaloneHelp } from '../../src/standalone.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { settingsInHelp, settingsInPage } from '../support/standalone/setting-tables.ts';

const text = readFileSync(join(PROJECT, 'docs', 'standalone.md'), 'utf8');
const documented = settingsInPage(text);
const help = standaloneHelp({ XDG_STATE_HOME: '~/.local/state' });
const known = settingsInHelp(help);

describe('the settings in docs/standalone.md', () => {
  it('are those of the command, all of them, with their defaults', () => {
    expect(known.length).toBeGreaterThan(10);
    expect(documented).toEqual(known);
  });
});
