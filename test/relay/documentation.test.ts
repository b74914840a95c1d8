import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { relayHelp } from '../../src/relay.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { settingsInHelp, settingsInPage } from '../support/standalone/setting-tables.ts';

const page = readFileSync(join(PROJECT, 'docs', 'kubernetes.md'), 'utf8');
const [, section = ''] = /^## The relay\n(.*?)^## /ms.exec(page) ?? [];
const documented = settingsInPage(section);
const known = settingsInHelp(relayHelp());

describe('the settings of the relay in docs/kubernetes.md', () => {
  it('are those of the command, all of them, with their defaults', () => {
    expect(known.length).toBeGreaterThan(5);
    expect(documented).toEqual(known);
  });
});
