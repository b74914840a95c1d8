import type { Kind } from '../kind.ts';
import { fileOf, GENERATED, indented } from '../text.ts';

/** The module that names the group and its kinds: the only place in the product where they are written. */
export function kindsModule(kinds: readonly Kind[]): string {
  const [{ group, version } = { group: '', version: '' }] = kinds;
  const entries = kinds.map(
    ({ name, plural, singular, scope }) =>
      `${name}: { kind: '${name}', plural: '${plural}', singular: '${singular}', scope: '${scope}' },`,
  );
  return fileOf(
    [GENERATED],
    ['/** The API group of all kinds. */', `export const GROUP = '${group}';`],
    ['/** The version in which the kinds are served. */', `export const VERSION = '${version}';`],
    ['/** The apiVersion of every object. */', `export const API_VERSION = '${group}/${version}';`],
    ['/** Every kind by its name. */', 'export const kinds = {', ...indented(entries), '} as const;'],
    ['/** The name of a kind. */', 'export type KindName = keyof typeof kinds;'],
  );
}

/** The module that holds the generated validator of each kind. */
export function validatorsModule(kinds: readonly Kind[]): string {
  const rules = kinds.map(
    ({ name, file }) =>
      `import { evaluate as evaluate${name}, rules as rules${name} } from './${file}.rules.ts';`,
  );
  const others = ['outline', 'shape', 'structure'].flatMap(part => [
    'import {',
    ...indented(kinds.map(({ name }) => `${part}${name},`)),
    `} from './${part}.ts';`,
  ]);
  const entries = kinds.flatMap(({ name }) => [
    `${name}: {`,
    ...indented(
      ['shape', 'structure', 'evaluate', 'rules', 'outline'].map(part => `${part}: ${part}${name},`),
    ),
    '},',
  ]);
  return fileOf(
    [GENERATED],
    [
      "import type { GeneratedValidator } from '../validation/validator.ts';",
      "import type { KindName } from './kinds.ts';",
      ...rules,
      ...others,
    ],
    [
      '/** The validator of each kind. */',
      'export const validators: Readonly<Record<KindName, GeneratedValidator>> = {',
      ...indented(entries),
      '};',
    ],
  );
}
