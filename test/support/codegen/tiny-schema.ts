import type { Json } from '../../../codegen/json.ts';
import type { Kind } from '../../../codegen/kind.ts';
import { load } from '../../../codegen/load/load.ts';

/** A change of the tiny schema: from `file#pointer` to the new value, or to undefined to delete it. */
export type Patch = Readonly<Record<string, Json | undefined>>;

/** The tiny schema files as text, after a patch. */
export function tinyFiles(patch: Patch = {}): Map<string, string> {
  const documents = structuredClone(TINY) as Record<string, unknown>;
  for (const [place, value] of Object.entries(patch)) change(documents, place, value);
  return new Map(Object.entries(documents).map(([file, document]) => [file, JSON.stringify(document)]));
}

/** The kind Sample of the tiny schema, after a patch. */
export function tinyKind(patch: Patch = {}): Kind {
  const kind = load(tinyFiles(patch)).find(({ name }) => name === 'Sample');
  if (!kind) throw new Error('the tiny schema has no kind Sample any more');
  return kind;
}

/** The place of a field of Sample's spec, which most patches change. */
export function specField(name: string, ...steps: readonly string[]): string {
  return ['sample.json#/properties/spec/properties', name, ...steps].join('/');
}

/** A valid Sample, with some of its spec replaced. */
export function sample(spec: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    apiVersion: 'tiny.example/v1',
    kind: 'Sample',
    metadata: { name: 'one' },
    spec: { count: 3, ...spec },
  };
}

function change(documents: Record<string, unknown>, place: string, value: Json | undefined): void {
  const [file = '', pointer = ''] = place.split('#');
  const steps = [file, ...pointer.split('/').slice(1)].map(unescaped);
  const last = steps.pop() ?? '';
  const parent = steps.reduce<Record<string, unknown>>((at, step) => containerAt(at, step, place), documents);
  if (value === undefined) Reflect.deleteProperty(parent, last);
  else parent[last] = value;
}

function containerAt(at: Record<string, unknown>, step: string, place: string): Record<string, unknown> {
  const next = at[step];
  if (typeof next !== 'object' || next === null) throw new Error(`a patch goes nowhere: ${place}`);
  return next as Record<string, unknown>;
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

const SHARED = {
  $defs: {
    Port: {
      description: 'A port number.',
      type: 'integer',
      format: 'int32',
      minimum: 1,
      maximum: 65535,
      'x-mesh-expect': 'a port (1 to 65535)',
    },
    ObjectMeta: {
      title: 'ObjectMeta',
      description: 'What every object has.',
      type: 'object',
      required: ['name'],
      'x-mesh-ignore': ['managedFields'],
      properties: {
        name: { description: 'The name.', type: 'string', maxLength: 253, pattern: '^[a-z0-9.-]+$' },
        labels: {
          description: 'Short texts to select by.',
          type: 'object',
          maxProperties: 64,
          additionalProperties: { type: 'string', maxLength: 63 },
        },
        creationTimestamp: { description: 'When it was made.', type: 'string', format: 'date-time' },
      },
    },
  },
};

/** The fields of Sample's spec: each type of value at least once. */
const SPEC_FIELDS = {
  note: { description: 'A text.', type: 'string', maxLength: 16 },
  code: {
    description: 'A text of a form.',
    type: 'string',
    minLength: 2,
    maxLength: 8,
    pattern: '^[a-z]+$',
    'x-mesh-expect': 'a code (2 to 8 letters)',
  },
  mode: { $ref: '#/$defs/Mode', default: 'Fast' },
  since: { description: 'A time.', type: 'string', format: 'date-time' },
  count: { description: 'A number.', type: 'integer', format: 'int32', minimum: 1, maximum: 10 },
  total: {
    description: 'A large number.',
    type: 'integer',
    format: 'int64',
    minimum: 0,
    maximum: 9007199254740991,
  },
  paused: { description: 'A flag.', type: 'boolean', default: false },
  amount: {
    description: 'A number or a text.',
    'x-kubernetes-int-or-string': true,
    minimum: 0,
    maxLength: 8,
    pattern: '^[0-9]+[mk]?$',
    'x-mesh-expect': 'an amount, such as 500m or 2',
  },
  wait: {
    description: 'A duration.',
    type: 'string',
    maxLength: 16,
    default: '1s',
    'x-kubernetes-validations': [
      { rule: "duration(self) <= duration('1h')", message: 'wait must be at most 1h' },
    ],
    'x-mesh-expect': 'a duration of at most 1h',
  },
  token: { description: 'A secret.', type: 'string', maxLength: 32, 'x-mesh-sensitive': true },
  words: {
    description: 'Texts in order.',
    type: 'array',
    maxItems: 4,
    'x-kubernetes-list-type': 'atomic',
    default: ['one'],
    items: { type: 'string', maxLength: 8 },
  },
  tags: {
    description: 'Different texts.',
    type: 'array',
    minItems: 1,
    maxItems: 4,
    'x-kubernetes-list-type': 'set',
    items: { type: 'string', enum: ['red', 'green', 'blue'] },
  },
  ports: {
    description: 'Ports, each with a name of its own.',
    type: 'array',
    maxItems: 4,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: { $ref: '#/$defs/NamedPort' },
  },
  labels: {
    description: 'Texts by name.',
    type: 'object',
    maxProperties: 4,
    additionalProperties: { type: 'string', maxLength: 8 },
    'x-kubernetes-validations': [
      { rule: 'self.all(key, key.size() <= 8)', message: 'labels must have names of at most 8 characters' },
    ],
  },
  limits: {
    title: 'SampleLimits',
    description: 'A nested object.',
    type: 'object',
    'x-kubernetes-map-type': 'atomic',
    default: {},
    properties: {
      low: {
        description: 'The least.',
        type: 'integer',
        format: 'int32',
        minimum: 0,
        maximum: 9,
        default: 1,
      },
      high: { description: 'The most.', type: 'integer', format: 'int32', minimum: 0, maximum: 9 },
    },
    'x-kubernetes-validations': [
      {
        rule: '!has(self.high) || self.low <= self.high',
        message: 'low must be at most high',
        fieldPath: '.low',
        reason: 'FieldValueInvalid',
      },
    ],
  },
};

const SAMPLE = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Sample',
  description: 'A kind with a field of each type.',
  'x-mesh-kind': {
    plural: 'samples',
    singular: 'sample',
    shortNames: ['smp'],
    scope: 'Namespaced',
    columns: [
      { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
      { name: 'Port', type: 'integer', jsonPath: '.spec.ports[?(@.name=="web")].number' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
  },
  type: 'object',
  required: ['spec'],
  properties: {
    metadata: {
      type: 'object',
      properties: {
        name: { description: 'A short name.', type: 'string', maxLength: 20, pattern: '^[a-z]+$' },
      },
    },
    spec: {
      title: 'SampleSpec',
      description: 'What is wanted.',
      type: 'object',
      required: ['count'],
      properties: SPEC_FIELDS,
      'x-kubernetes-validations': [
        {
          rule: "self.mode != 'Slow' || !has(self.note)",
          message: 'note has no effect while mode is Slow',
          fieldPath: '.note',
          reason: 'FieldValueForbidden',
        },
      ],
    },
    status: {
      title: 'SampleStatus',
      description: 'What was found.',
      type: 'object',
      properties: { port: { $ref: 'shared.json#/$defs/Port', description: 'The port in use.' } },
    },
  },
  $defs: {
    Mode: { title: 'Mode', description: 'Fast or slow.', type: 'string', enum: ['Fast', 'Slow'] },
    NamedPort: {
      title: 'NamedPort',
      description: 'A port with a name.',
      type: 'object',
      required: ['name', 'number'],
      properties: {
        name: { description: 'The name.', type: 'string', maxLength: 8 },
        number: { $ref: 'shared.json#/$defs/Port' },
      },
    },
  },
};

/** The tiny schema: a group, shared definitions, and one kind. */
const TINY = {
  'group.json': { group: 'tiny.example', version: 'v1', categories: ['tiny'] },
  'shared.json': SHARED,
  'sample.json': SAMPLE,
};
