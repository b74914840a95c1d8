import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keptBy } from '../../synth/chart/expressions.ts';
import type { Placed } from '../../synth/chart/expressions.ts';
import { fieldsOf, readSchema } from '../../synth/chart/fields.ts';
import { merge } from '../../synth/chart/merge.ts';
import { nodeOf } from '../../synth/chart/nodes.ts';
import type { Node } from '../../synth/chart/nodes.ts';
import { withOwnValues } from '../../synth/chart/own-values.ts';
import { printTemplate } from '../../synth/chart/print.ts';
import { sentinelOf } from '../../synth/chart/sentinels.ts';
import { templatesOf } from '../../synth/chart/templates.ts';

/** The runs of three switches from which a chart is made: none, each alone, all, and all but each. */
const RUNS = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]].map(on => new Set(on));

/** What a merged node is where these switches are on. */
function valueWith(on: ReadonlySet<number>, node: Node): unknown {
  switch (node.is) {
    case 'constant':
      return node.value;
    case 'if':
      return valueWith(on, on.has(node.index) ? node.then : node.otherwise);
    case 'map': {
      const fields = Object.entries(node.fields).map(([key, field]) => [key, valueWith(on, field)] as const);
      return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
    }
    case 'list':
      return node.items.map(item => valueWith(on, item)).filter(item => item !== undefined);
    case 'absent':
    case 'json':
    case 'range':
    case 'text':
      return undefined;
  }
}

describe('runs of three switches', () => {
  const named = fc.record({ name: fc.constantFrom('a', 'b', 'c'), value: fc.boolean() });
  const byName = fc
    .uniqueArray(named, { selector: ({ name }) => name })
    .map(items => items.toSorted((one, other) => (one.name < other.name ? -1 : 1)));
  const object = fc.record({ value: fc.constantFrom('on', 'off', 1), env: byName }, { requiredKeys: [] });

  it('make one node that is what each run was', () => {
    fc.assert(
      fc.property(fc.tuple(...RUNS.map(() => object)), written => {
        const merged = merge(RUNS.map((on, index) => ({ on, node: nodeOf(written[index]) })));
        RUNS.forEach((on, index) => {
          const { env = [], ...others } = valueWith(on, merged) as {
            readonly env?: readonly { readonly name: string }[];
          };
          const sorted = env.toSorted((one, other) => (one.name < other.name ? -1 : 1));
          expect({ env: sorted, ...others }).toEqual({ env: [], ...written[index] });
        });
      }),
    );
  });

  it('are refused where they differ without a switch', () => {
    const node = (value: string) => ({ on: new Set([0]), node: nodeOf({ value }) });
    expect(() => merge([node('a'), node('b')])).toThrow('runs with the same switches differ');
  });
});

describe('a value of the configuration', () => {
  const schema = readSchema(readFileSync('synth/config.json', 'utf8'));
  const list = { path: ['hosts'], is: 'list', isOptional: true, schema: { type: 'array' } } as const;

  it('is refused if no template reads it', () => {
    const kind = { kind: 'CustomResourceDefinition', metadata: { name: 'a' } };
    const unread = { ...schema, properties: { ...schema.properties, unread: { type: 'string' } } } as const;
    expect(() => templatesOf({ schema: withOwnValues(unread), definitions: [kind] })).toThrow(
      'no template reads unread',
    );
  });

  it('is refused if it is a list of which something else than text with commas is made', () => {
    const items = sentinelOf(list, 0, true) as readonly string[];
    expect(nodeOf(items.join())).toMatchObject({ is: 'text', parts: [{ join: { index: 0 } }] });
    expect(() => nodeOf(items.join(';'))).toThrow('a list of the chart is not joined by commas');
  });

  it('is refused if it is a list of which each item is something else', () => {
    const [first, second] = sentinelOf(list, 0, true) as readonly string[];
    expect(nodeOf([{ a: first }, { a: second }])).toMatchObject({ is: 'list', items: [{ is: 'range' }] });
    expect(() => nodeOf([{ a: first }, { b: second }])).toThrow('no item repeats as');
  });

  it('is refused if it is a list or a map with a default', () => {
    const schema = { type: 'object', properties: { hosts: { ...list.schema, default: ['a'] } } } as const;
    expect(() => fieldsOf(schema)).toThrow('hosts: a list or map of the chart has no default');
  });
});

describe('a template', () => {
  const placed = (path: readonly string[], is: Placed['is'] = 'text'): Placed => ({
    ...{ path, is, isOptional: true, schema: { type: 'string' } },
  });
  const value = (index: number) => sentinelOf(placed([]), index, true);
  const printed = (object: object, fields: readonly Placed[]) => printTemplate('a', nodeOf([object]), fields);

  it('keeps percent signs of a text with values', () => {
    expect(printed({ rate: `50% of ${String(value(0))}` }, [placed(['a', 'b'])])).toContain(
      'rate: {{ printf "50%% of %v" .Values.a.b | quote }}\n',
    );
  });

  it('tests whether a value is set in its group, however deep that is', () => {
    const scope = { fields: [placed(['a', 'b', 'c'])], root: '', define: () => '' } as const;
    expect(keptBy(0, scope)).toBe('hasKey .Values.a.b "c"');
  });

  it('is refused if an item of a list may be empty, or a value is unknown', () => {
    const item = { is: 'if', index: 0, then: nodeOf('a'), otherwise: { is: 'absent' } } as const;
    const map: Node = { is: 'map', fields: { only: item }, spreads: [] };
    const object: Node = { is: 'map', fields: { list: { is: 'list', items: [map] } }, spreads: [] };
    expect(() => printTemplate('a', { is: 'list', items: [object] }, [placed(['a'], 'switch')])).toThrow(
      'an item of a list has no field that is always set',
    );
    expect(() => printed({ a: value(1) }, [placed(['a'])])).toThrow('there is no value 1');
  });
});
