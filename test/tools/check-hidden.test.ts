import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { excerptGuard } from '../../src/tools/check/hidden.ts';
import type { Finding } from '../../src/tools/check/objects.ts';
import { named } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';

/** Which lines of a file may be shown beside a finding. */
function shownOf(text: string): readonly string[] {
  const mayShow = excerptGuard([{ name: 'a.yaml', text }]);
  const finding = { reason: 'Invalid', text: 'is wrong', file: 'a.yaml', line: 1, column: 1 } as Finding;
  return text.split('\n').filter(line => mayShow(finding, line));
}

const secret = (fields: object) =>
  stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, ...fields });
const webWith = (healthCheck: object) =>
  named(meshEndpoints({ endpoints: [endpoint({ healthCheck })] }), 'default/web');

describe('the lines of a file that are shown', () => {
  it.each([
    ['data', { data: { a: 'aGlkZGVu' } }, 'aGlkZGVu'],
    ['stringData', { stringData: { a: 'hidden' } }, 'hidden'],
    ['a number', { stringData: { a: 12345 } }, '12345'],
    ['a flag', { stringData: { a: true } }, 'true'],
    ['a list', { stringData: { a: ['hidden'] } }, 'hidden'],
    ['several lines', { stringData: { a: 'one-line\n\n  hidden\n' } }, 'hidden'],
  ])('have no value of a Secret: %s', (_, fields, value) => {
    const text = secret(fields);
    const shown = shownOf(text);
    expect(text).toContain(value);
    expect(shown.join('\n')).not.toContain(value);
    expect(shown).toContain('kind: Secret');
  });

  it.each([
    ['a header of a check', webWith({ headers: { Authorization: 'hidden' } })],
    [
      'a variable of mesh pods',
      named(meshTailnet({ pool: { extraEnv: [{ name: 'A', value: 'hidden' }] } }), 'a'),
    ],
    ['a URL', named(meshTailnet({ controlURL: 'https://hidden.example.com' }), 'a')],
  ])('have no sensitive value: %s', (_, object) => {
    const text = stringify(object);
    expect(text).toContain('hidden');
    expect(shownOf(text).join('\n')).not.toContain('hidden');
    expect(shownOf(text)).toContain('metadata:');
  });

  it.each([
    ['a ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'shown' } }],
    [
      'a kind of the same name in another group',
      { ...webWith({ headers: { a: 'shown' } }), apiVersion: 'example.com/v1' },
    ],
    ['a field that is not sensitive', webWith({ path: '/shown' })],
    ['a document that is no object', 'shown'],
  ])('have all of %s', (_, object) => {
    const text = stringify(object);
    expect(shownOf(text)).toEqual(text.split('\n'));
  });

  it.each([
    ['no line', 'a Secret', 'Secret', []],
    ['all lines', 'another kind', 'ConfigMap', ['kind: ConfigMap', 'data: {a: "shown']],
  ])('are %s of %s that cannot be read', (_lines, _what, kind, shown) => {
    expect(shownOf(`kind: ${kind}\ndata: {a: "shown`)).toEqual(shown);
  });

  it('have what is hidden in another file', () => {
    const mayShow = excerptGuard([
      { name: 'a.yaml', text: secret({ stringData: { a: 'hidden' } }) },
      { name: 'b.yaml', text: 'name: hidden' },
    ]);
    const at = (file?: string) =>
      ({ reason: 'Invalid', text: 'is wrong', ...(file && { file, line: 1, column: 1 }) }) as Finding;
    expect([at('a.yaml'), at('b.yaml'), at()].map(each => mayShow(each, 'hidden'))).toEqual([
      false,
      true,
      true,
    ]);
    expect(mayShow(at('a.yaml'), 'hidden')).toBe(false);
  });
});
