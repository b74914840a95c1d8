import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { everyKnob, synthesized } from '../support/synth/synthesized.ts';

const files = synthesized(everyKnob);
const written = [...files].filter(([path]) => path !== 'crds.yaml');

describe('a configuration that turns every knob', () => {
  it.each(written)('writes %s as in test/golden/synth', async (path, text) => {
    await expect(text).toMatchFileSnapshot(`../golden/synth/${path}`);
  });

  it('writes no other file', () => {
    const present = readdirSync('test/golden/synth', { recursive: true, withFileTypes: true });
    expect(present.filter(entry => entry.isFile())).toHaveLength(written.length);
  });

  it('writes the CRDs of our kinds as generated', () => {
    const definitions = readdirSync('dist/crds').sort();
    for (const name of definitions)
      expect(files.get('crds.yaml')).toContain(readFileSync(`dist/crds/${name}`, 'utf8'));
  });

  it('writes the same again', () => {
    expect([...synthesized(everyKnob)]).toEqual([...files]);
  });
});

describe('every file', () => {
  it.each([...files, ...synthesized({})])(
    '%s ends in one line break, without spaces at the ends of lines',
    (_, text) => {
      expect(text).toMatch(/[^\n]\n$/);
      expect(text).not.toMatch(/[ \t]+\n/);
    },
  );

  it.each([...files])('%s has the mark of a generated file', (_, text) => {
    expect(text.split('\n')[0]).toBe('# Written by mesh-gateway synth: change the configuration instead.');
  });
});

describe('a kustomization', () => {
  it('names what is applied together, the namespace before its objects', () => {
    expect(synthesized({}).get('kustomization.yaml')).toContain(
      [
        'resources:',
        '  - crds.yaml',
        '  - namespace.yaml',
        '  - rbac.yaml',
        '  - admission-policies.yaml',
        '  - operator.yaml',
        '  - extension-server.yaml',
        '  - network-policies.yaml',
        '',
      ].join('\n'),
    );
  });

  it('leaves out what was not chosen', () => {
    const chosen = synthesized({}, ['operator', 'monitoring']);
    expect([...chosen.keys()].sort()).toEqual([
      'kustomization.yaml',
      'monitoring/dashboards.yaml',
      'monitoring/kustomization.yaml',
      'monitoring/pod-monitors.yaml',
      'monitoring/rules.yaml',
      'monitoring/service-monitors.yaml',
      'operator.yaml',
    ]);
    expect(chosen.get('kustomization.yaml')).toContain('resources:\n  - operator.yaml\n');
  });
});
