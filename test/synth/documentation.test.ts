import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../synth/config.ts';
import { alerts } from '../../synth/monitoring/alerts.ts';
import { at } from '../support/synth/parts.ts';
import { installationOf, knobPaths, objectsIn, synthesized } from '../support/synth/synthesized.ts';

const text = readFileSync('docs/install.md', 'utf8');
const rows = text
  .split('\n')
  .filter(line => line.startsWith('|'))
  .map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim()),
  );

/**
 * The version of Kubernetes, 1.N, that accepts a CRD whose rules call a function: the one after the version that
 * added it.
 */
const SINCE: Readonly<Record<string, number>> = {
  ...Object.fromEntries(['has', 'size', 'matches', 'all', 'exists', 'map', 'filter'].map(name => [name, 25])),
  startsWith: 25,
  duration: 25,
  intersects: 30,
  isIP: 31,
  isCIDR: 31,
  cidr: 31,
  containsIP: 31,
};

/** The rules of all our kinds. */
function rulesOfKinds(): readonly string[] {
  const found: string[] = [];
  JSON.stringify(objectsIn(synthesized({}, ['crds'])), (key, value: unknown) => {
    if (key === 'rule') found.push(String(value));
    return value;
  });
  return found;
}

/** The functions that a rule calls, without the contents of its strings. */
function functionsIn(rule: string): readonly string[] {
  const code = rule.replaceAll(/'[^']*'|"[^"]*"/g, '');
  return [...code.matchAll(/([A-Za-z]+)\(/g)].map(([, name = '']) => name);
}

describe('docs/install.md', () => {
  it.each(knobPaths.map(steps => ({ name: steps.join('.'), steps })))(
    'names $name with its default',
    ({ name, steps }) => {
      const usual = at(installationOf({}), ...steps);
      const documented = rows.find(([first]) => first === `\`${name}\``)?.[1];
      expect(documented).toBe(
        usual === undefined ? '' : `\`${JSON.stringify(usual).replace(/^"|"$/g, '')}\``,
      );
    },
  );

  it('names each alert with its hold', () => {
    for (const { alert, for: hold } of alerts('a')) {
      const documented = rows.find(([first]) => first === `\`${alert}\``)?.[1];
      expect(documented, alert).toContain(`for ${hold.replace('m', '')} minutes`);
    }
  });

  it('names each file that is written', () => {
    for (const path of synthesized({}).keys()) expect(text).toContain(path.split('/')[0]);
  });

  it.each(['The configuration', 'The manifests', 'Apply the manifests', 'Remove'])(
    'has the section "%s", whose commands tests run on a cluster',
    heading => {
      const section = text.split(/^## /m).find(part => part.startsWith(`${heading}\n`));
      expect(section).toMatch(/^```(sh|yaml)$/m);
    },
  );

  it('shows a configuration that is right', () => {
    const shown = /```yaml\n([^]*?)\n```/.exec(text)?.[1] ?? '';
    expect(shown).toContain('image:');
    expect(readConfiguration(shown).faults).toBeUndefined();
  });

  it('names the lowest version of Kubernetes that supports the rules of our kinds', () => {
    const called = rulesOfKinds().flatMap(functionsIn);
    const least = Math.max(...called.map(name => SINCE[name] ?? Infinity));
    expect(new Set(called).size).toBeGreaterThan(5);
    expect(text).toContain(`Kubernetes 1.${least} or newer`);
  });

  it('has links that resolve', () => {
    for (const [, target = ''] of text.matchAll(/\]\((\.\.\/[^)]+)\)/g))
      expect(existsSync(`docs/${target}`)).toBe(true);
  });
});
