import { describe, expect, it } from 'vitest';
import { load } from '../../codegen/load/load.ts';
import { refusalIn, refusalOf } from '../support/codegen/refusal.ts';
import type { Refused } from '../support/codegen/refusal.ts';
import { tinyFiles } from '../support/codegen/tiny-schema.ts';

const GROUP_FORM = 'must be a text that matches ^[a-z0-9]+([-.][a-z0-9]+)+$';
const VERSION_FORM = 'must be a text that matches ^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$';

const GROUPS: readonly Refused[] = [
  ['no group.json', { 'group.json': undefined }, 'group.json#', 'must be an object'],
  ['a list', { 'group.json': [] }, 'group.json#', 'must be an object'],
  ['no group', { 'group.json#/group': undefined }, 'group.json#/group', GROUP_FORM],
  ['a group in capitals', { 'group.json#/group': 'Tiny.example' }, 'group.json#/group', GROUP_FORM],
  ['a group of one word', { 'group.json#/group': 'tiny' }, 'group.json#/group', GROUP_FORM],
  ['a group that is a number', { 'group.json#/group': 1 }, 'group.json#/group', GROUP_FORM],
  ['no version', { 'group.json#/version': undefined }, 'group.json#/version', VERSION_FORM],
  ['a version 1', { 'group.json#/version': '1' }, 'group.json#/version', VERSION_FORM],
  ['a version v1gamma1', { 'group.json#/version': 'v1gamma1' }, 'group.json#/version', VERSION_FORM],
  [
    'no categories',
    { 'group.json#/categories': undefined },
    'group.json#/categories',
    'must be a list of texts',
  ],
  ['a category 1', { 'group.json#/categories': [1] }, 'group.json#/categories', 'must be a list of texts'],
];

describe('group.json', () => {
  it.each(GROUPS)('is refused with %s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it.each(['v1', 'v2', 'v1alpha1', 'v1beta12'])('may have version %s', version => {
    expect(load(tinyFiles({ 'group.json#/version': version }))[0]?.version).toBe(version);
  });
});

const NO_OBJECT = 'must be an object';
const ONE_WORD = 'must be a text that matches ^[a-z]+$';
const AT_ROOT = 'has no meaning at the root of a kind';
const NAMES = 'sample.json#/x-mesh-kind';

const KINDS: readonly Refused[] = [
  ['a text', { 'sample.json': 'Sample' }, 'sample.json#', NO_OBJECT],
  ['null', { 'sample.json': null }, 'sample.json#', NO_OBJECT],
  [
    'a keyword of schemas',
    { 'sample.json#/additionalProperties': {} },
    'sample.json#/additionalProperties',
    AT_ROOT,
  ],
  [
    'rules at its root',
    { 'sample.json#/x-kubernetes-validations': [] },
    'sample.json#/x-kubernetes-validations',
    AT_ROOT,
  ],
  ['a keyword with a slash', { 'sample.json#/a~1b': 1 }, 'sample.json#/a~1b', AT_ROOT],
  [
    'no title',
    { 'sample.json#/title': undefined },
    'sample.json#/title',
    'must be a text that matches ^[A-Z][A-Za-z]+$',
  ],
  [
    'a title with a space',
    { 'sample.json#/title': 'A b' },
    'sample.json#/title',
    'must be a text that matches ^[A-Z][A-Za-z]+$',
  ],
  ['no description', { 'sample.json#/description': undefined }, 'sample.json#/description', 'must be a text'],
  ['no x-mesh-kind', { [NAMES]: undefined }, NAMES, NO_OBJECT],
  [
    'no scope',
    { [`${NAMES}/scope`]: undefined },
    `${NAMES}/scope`,
    'must be a text that matches ^(Namespaced|Cluster)$',
  ],
  [
    'another scope',
    { [`${NAMES}/scope`]: 'Global' },
    `${NAMES}/scope`,
    'must be a text that matches ^(Namespaced|Cluster)$',
  ],
  ['no plural', { [`${NAMES}/plural`]: undefined }, `${NAMES}/plural`, ONE_WORD],
  ['a plural in capitals', { [`${NAMES}/plural`]: 'Samples' }, `${NAMES}/plural`, ONE_WORD],
  ['no singular', { [`${NAMES}/singular`]: undefined }, `${NAMES}/singular`, ONE_WORD],
  ['no shortNames', { [`${NAMES}/shortNames`]: undefined }, `${NAMES}/shortNames`, 'must be a list of texts'],
  ['no properties', { 'sample.json#/properties': undefined }, 'sample.json#/properties', NO_OBJECT],
  [
    'a part beside spec and status',
    { 'sample.json#/properties/data': { type: 'boolean' } },
    'sample.json#/properties/data',
    'is not a part of a resource: metadata, spec and status are',
  ],
  [
    'a part that is required and missing',
    { 'sample.json#/required': ['spec', 'data'] },
    'sample.json#/required',
    'names "data", which is not in properties',
  ],
  [
    'required as a text',
    { 'sample.json#/required': 'spec' },
    'sample.json#/required',
    'must be a list of different texts',
  ],
];

describe('the file of a kind', () => {
  it.each(KINDS)('is refused with %s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it('is refused where it is not JSON, with the message of the parser', () => {
    const files = tinyFiles().set('sample.json', '{"title": }');
    expect(refusalIn(() => load(files))).toMatch(/^sample\.json#: Unexpected token '?}'?/);
  });

  it('is refused where there is no ObjectMeta to begin with', () => {
    const patch = { 'shared.json#/$defs/ObjectMeta': undefined };
    expect(refusalOf(patch)).toBe(
      'sample.json#/$ref: names nothing: there is no shared.json#/$defs/ObjectMeta',
    );
  });

  it('may leave required out: then spec is', () => {
    expect(load(tinyFiles({ 'sample.json#/required': undefined }))[0]?.root.required).toEqual([
      'apiVersion',
      'kind',
      'metadata',
      'spec',
    ]);
  });
});

const COLUMNS = `${NAMES}/columns`;
const MODE = { name: 'Mode', type: 'string', jsonPath: '.spec.mode' };
const column = (change: Readonly<Record<string, string>>) => ({ [`${COLUMNS}/0`]: { ...MODE, ...change } });

const COLUMN_FAULTS: readonly Refused[] = [
  ['no list', { [COLUMNS]: undefined }, COLUMNS, 'must be a list of columns'],
  ['a column that is a text', { [`${COLUMNS}/0`]: 'Mode' }, `${COLUMNS}/0`, NO_OBJECT],
  [
    'a name in small letters',
    column({ name: 'mode' }),
    `${COLUMNS}/0/name`,
    'must be a text that matches ^[A-Z][A-Za-z ]*$',
  ],
  [
    'a type that kubectl does not print',
    column({ type: 'object' }),
    `${COLUMNS}/0/type`,
    'must be a text that matches ^(string|integer|boolean|date)$',
  ],
  [
    'a path without a dot',
    column({ jsonPath: 'spec' }),
    `${COLUMNS}/0/jsonPath`,
    'must be a text that matches ^\\..+$',
  ],
  [
    'a priority that kubectl treats as 1',
    { [`${COLUMNS}/0`]: { ...MODE, priority: 2 } },
    `${COLUMNS}/0/priority`,
    'must be 1, for a column of `--output wide`, or absent',
  ],
  [
    'a path to no field',
    column({ jsonPath: '.spec.moda' }),
    `${COLUMNS}/0/jsonPath`,
    '.spec.moda names no field',
  ],
  [
    'a path into a text',
    column({ jsonPath: '.spec.mode.x' }),
    `${COLUMNS}/0/jsonPath`,
    '.spec.mode.x names no field',
  ],
  [
    'a path through a list without an index',
    column({ jsonPath: '.spec.ports.number' }),
    `${COLUMNS}/0/jsonPath`,
    '.spec.ports.number names no field',
  ],
];

describe('the columns of a kind', () => {
  it.each(COLUMN_FAULTS)('are refused with %s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it.each([
    '.spec.ports[0].number',
    '.spec.ports[?(@.name=="web")].number',
    '.status.port',
    '.metadata.name',
  ])('may show %s', jsonPath => {
    expect(refusalOf(column({ jsonPath }))).toBe('nothing is refused');
  });
});

const METADATA = 'sample.json#/properties/metadata';

const METADATA_FAULTS: readonly Refused[] = [
  ['a flag', { [METADATA]: true }, METADATA, NO_OBJECT],
  ['no properties', { [`${METADATA}/properties`]: undefined }, `${METADATA}/properties`, NO_OBJECT],
  [
    'labels beside the name',
    { [`${METADATA}/properties/labels`]: { type: 'boolean' } },
    `${METADATA}/properties`,
    'may hold name only',
  ],
  ['no name', { [`${METADATA}/properties`]: {} }, `${METADATA}/properties`, 'may hold name only'],
  [
    'a name that is a flag',
    { [`${METADATA}/properties/name`]: true },
    `${METADATA}/properties/name`,
    NO_OBJECT,
  ],
  [
    'a name of type boolean',
    { [`${METADATA}/properties/name`]: { type: 'boolean' } },
    `${METADATA}/properties/name`,
    'must be a text',
  ],
  [
    'a name without maxLength',
    { [`${METADATA}/properties/name/maxLength`]: undefined },
    `${METADATA}/properties/name`,
    'needs maxLength (or enum, or format): unbounded texts make CEL rules cost too much',
  ],
];

describe('what a kind declares about metadata', () => {
  it.each(METADATA_FAULTS)('is refused with %s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it('may be left out: then the name is what every name is', () => {
    const [kind] = load(tinyFiles({ [METADATA]: undefined }));
    expect(kind?.nameNode).toBeUndefined();
  });
});
