import type { Example } from './example.ts';

/** What is a default export and what is not. */
export const defaultExportExamples: readonly Example[] = [
  {
    it: 'have names',
    files: {
      'src/api/a.ts': 'export default 1;',
      'codegen/b.ts': '\nexport default function b() {}',
      'test/c.ts': 'const c = 1;\nexport { c as default };',
    },
    violations: [
      'src/api/a.ts:1: is a default export: export it by its name',
      'codegen/b.ts:2: is a default export: export it by its name',
      'test/c.ts:2: is a default export: export it by its name',
    ],
  },
  {
    it: 'may be of any form that has one',
    files: { 'src/api/a.ts': "export const a = 1;\nexport { b } from './b.ts';\nimport c from './c.json';" },
  },
];

/** What leaves code behind and what does not. */
export const enumExamples: readonly Example[] = [
  {
    it: 'have no enum and no namespace',
    files: { 'src/api/a.ts': 'export const enum Color { Red }\nnamespace Colors { export const red = 1; }' },
    violations: [
      'src/api/a.ts:1: Color is an enum: write a union of texts',
      'src/api/a.ts:2: Colors is a namespace: write a file',
    ],
  },
  {
    it: 'may declare what a module without types has',
    files: { 'src/api/a.ts': "declare module 'untyped' {}\ndeclare global { const VERSION: string }" },
  },
];

/** What is a barrel and what is not. */
export const barrelExamples: readonly Example[] = [
  {
    it: 'do not just pass on what others export',
    files: {
      'src/api/index.ts': "/** The API. */\nexport * from './a.ts';\nexport type { B } from './b.ts';",
      'codegen/all.ts': "import { a } from './a.ts';\nexport { a };",
    },
    violations: [
      'src/api/index.ts: only re-exports: delete it, and import from the files themselves',
      'codegen/all.ts: only re-exports: delete it, and import from the files themselves',
    ],
  },
  {
    it: 'may pass something on beside what they have, and the library passes on all',
    files: {
      'src/index.ts': "export * from './api/a.ts';",
      'src/api/validation/validator-functions.ts': "export { a } from './a.ts';\nexport const b = 1;",
    },
  },
];

/** Which names are vague. */
export const vagueNameExamples: readonly Example[] = [
  {
    it: 'name what is inside',
    files: { 'src/api/utils/a.ts': '', 'src/runtime/queue-manager.ts': '', 'test/Helper.test.ts': '' },
    violations: [
      'src/api/utils/a.ts: "utils" is vague: name what it holds or does',
      'src/runtime/queue-manager.ts: "queue-manager.ts" is vague: name what it holds or does',
      'test/Helper.test.ts: "Helper.test.ts" is vague: name what it holds or does',
    ],
  },
  { it: 'may begin with the same letters', files: { 'src/api/utility.ts': '', 'src/api/implied.ts': '' } },
];
