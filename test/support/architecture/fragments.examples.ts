import type { Example } from './example.ts';

const lines = (count: number) => 'export const a = 1;\n'.repeat(count);

/** Which short files are fragments of another. */
export const fragmentExamples: readonly Example[] = [
  {
    it: 'belong into the one file of the same folder that imports them',
    files: {
      'src/api/a.ts': lines(24),
      'src/api/b.ts': "import { a } from './a.ts';",
      'test/a.test.ts': "import { a } from '../src/api/a.ts';",
    },
    violations: [
      'src/api/a.ts: has fewer than 25 lines, and only src/api/b.ts imports it: move it into that file',
    ],
  },
  {
    it: 'stay where several files or another folder import them, where they are long, and in tests',
    files: {
      'src/api/a.ts': lines(1),
      'src/api/b.ts': "import { a } from './a.ts';\nimport { a as d } from './d.ts';",
      'src/api/c.ts': "import { a } from './a.ts';\nimport { a as e } from '../log/e.ts';",
      'src/api/d.ts': lines(25),
      'src/log/e.ts': lines(1),
      'src/api/generated/f.ts': lines(1),
      'src/api/generated/g.ts': "import { a } from './f.ts';",
      'test/support/h.ts': lines(1),
      'test/support/i.ts': "import { a } from './h.ts';",
    },
  },
];
