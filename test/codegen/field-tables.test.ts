import { describe, expect, it } from 'vitest';
import { withFieldTables } from '../../codegen/field-tables.ts';
import { specField, tinyKind } from '../support/codegen/tiny-schema.ts';

const kind = tinyKind({
  [specField('count')]: {
    description: 'How many | at most.',
    type: 'integer',
    format: 'int32',
    minimum: 1,
    maximum: 9,
  },
});

function page(name: string, path: string, body = ''): string {
  return `# Before\n\n<!-- fields of ${name} ${path} -->\n${body}<!-- end of fields -->\n\nAfter\n`;
}

describe('a page with a table of fields', () => {
  const text = withFieldTables(page('Sample', 'spec', 'outdated\n'), [kind]);

  it('has a row for each field, and keeps everything around', () => {
    expect(text).toMatch(/^# Before\n\n<!-- fields of Sample spec -->\n\n\| field /);
    expect(text).toMatch(/\n\n<!-- end of fields -->\n\nAfter\n$/);
    expect(text).not.toContain('outdated');
    const names = [...text.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
    expect(names).toEqual(
      Object.keys(kind.root.fields['spec']?.is === 'object' ? kind.root.fields['spec'].fields : {}),
    );
    expect(text).toMatch(/^\| `count` \(required\) +\| 1 to 9 +\| +\| How many \\\| at most\. +\|$/m);
  });

  it('has lines of one length', () => {
    const lengths = new Set(
      text
        .split('\n')
        .filter(line => line.startsWith('|'))
        .map(line => line.length),
    );
    expect(lengths.size).toBe(1);
  });

  it('stays the same when it is generated again', () => {
    expect(withFieldTables(text, [kind])).toBe(text);
  });

  it.each([
    ['Absent', 'spec'],
    ['Sample', 'spec.absent'],
    ['Sample', 'spec.count'],
  ])('must name an object of the schema: %s %s', (name, path) => {
    expect(() => withFieldTables(page(name, path), [kind])).toThrow(`${name} ${path}, which is no object`);
  });

  it('must end its table', () => {
    const text = page('Sample', 'spec').replace('<!-- end of fields -->', '');
    expect(() => withFieldTables(text, [kind])).toThrow('a table of fields has no end');
  });
});
