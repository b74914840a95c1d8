import type { Example } from './example.ts';

/** Which exports need a comment. */
export const documentationExamples: readonly Example[] = [
  {
    it: 'carry a comment where another folder imports a function, a class or an interface',
    files: {
      'src/b.ts': "import { a } from './api/a.ts';\nimport type { B } from './api/a.ts';",
      'src/d.ts': "export * from '../codegen/c.ts';",
      'src/api/a.ts': 'export function a() {}\n\n// not a doc comment\nexport class B {}',
      'codegen/c.ts':
        '/** Of what follows. */\ntype D = 1;\nexport interface C {}\nexport const e = () => 1;',
    },
    violations: [
      'src/api/a.ts:1: is exported without a comment: write its contract in one sentence',
      'src/api/a.ts:4: is exported without a comment: write its contract in one sentence',
      'codegen/c.ts:3: is exported without a comment: write its contract in one sentence',
      'codegen/c.ts:4: is exported without a comment: write its contract in one sentence',
    ],
  },
  {
    it: 'need none where only a neighbour, or a test, imports them',
    files: {
      'src/api/a.ts': 'export function a() {}',
      'src/api/b.ts': "import { a } from './a.ts';",
      'test/a.test.ts': "import { a } from '../src/api/a.ts';",
    },
  },
  {
    it: 'need none as data and types, and not in tests and generated files',
    files: {
      'src/api/a.ts':
        '/** Gives one. */\nexport async function a() {}\nexport type B = 1;\nexport const c = 1;\nfunction d() {}',
      'src/api/generated/a.ts': 'export function a() {}',
      'test/support/a.ts': 'export function a() {}',
    },
  },
];
