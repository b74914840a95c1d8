import type { Installation } from '../generated/types.ts';
import type { Manifest } from '../install.ts';
import type { Install } from '../installation.ts';
import type { Placed } from './expressions.ts';
import { fieldsOf, isGroup } from './fields.ts';
import type { Schema } from './fields.ts';
import type { OwnValues } from './own-values.ts';
import { sentinelOf } from './sentinels.ts';

/** What a chart is made from. */
export type ChartSource = {
  /** The schema of the values. */
  readonly schema: Schema;
  readonly definitions: readonly Manifest[];
};

/** A run of synth: its input, and the indexes of the switches that are on and of the optional values that are set. */
export type Input = {
  readonly on: ReadonlySet<number>;
  readonly install: Install;
  readonly own: OwnValues;
};

/** All that templates place: the values, then what Helm knows by itself. */
export function placedFields({ schema }: ChartSource): readonly Placed[] {
  const builtIn = (name: string, from: string): Placed => ({
    path: [name],
    from,
    is: 'text',
    isOptional: false,
    schema: { type: 'string' },
  });
  return [
    ...fieldsOf(schema),
    builtIn('namespace', '.Release.Namespace'),
    builtIn('version', '.Chart.AppVersion'),
  ];
}

/** The runs whose differences show what depends on a switch, or on whether an optional value is set. */
export function inputsOf(source: ChartSource): readonly Input[] {
  const fields = placedFields(source);
  const all = fields.flatMap(({ is, isOptional }, index) => (is === 'switch' || isOptional ? [index] : []));
  const sets = [all, ...all.map(one => all.filter(other => other !== one)), ...all.map(one => [one]), []];
  return sets.map(on => inputOf(source, fields, new Set(on)));
}

function inputOf({ schema }: ChartSource, fields: readonly Placed[], on: ReadonlySet<number>): Input {
  const sentinels = new Map(
    fields.map((field, index) => [field.path.join('.'), sentinelOf(field, index, on.has(index))]),
  );
  const unset = new Set(fields.filter(({ isOptional }, index) => isOptional && !on.has(index)));
  for (const { path } of unset) sentinels.delete(path.join('.'));
  const values = configured(schema, [], path => sentinels.get(path)) as Installation & OwnValues;
  const installation = { ...values, namespace: sentinels.get('namespace') as string };
  return { on, install: { installation, version: sentinels.get('version') as string }, own: values };
}

/** A configuration by its schema, without the fields that are undefined. */
function configured(
  { properties = {} }: Schema,
  path: readonly string[],
  valueAt: (path: string) => unknown,
): unknown {
  const fields = Object.entries(properties).map(([name, inner]) => {
    const at = [...path, name];
    return [name, isGroup(inner) ? configured(inner, at, valueAt) : valueAt(at.join('.'))] as const;
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}
