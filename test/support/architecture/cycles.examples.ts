import type { Example } from './example.ts';

/** Which circles of imports are refused and accepted. */
export const cycleExamples: readonly Example[] = [
  {
    it: 'do not run in a circle',
    files: {
      'src/api/b.ts': "import { c } from './c.ts';",
      'src/api/a.ts': "import { b } from './b.ts';",
      'src/api/c.ts': "import { a } from './a.ts';\nimport { b } from './b.ts';",
    },
    violations: [
      'src/api/b.ts -> src/api/c.ts -> src/api/b.ts is a cycle: move what both need into a file of its own, or hand it in',
      'src/api/a.ts -> src/api/b.ts -> src/api/c.ts -> src/api/a.ts is a cycle: move what both need into a file of its own, or hand it in',
    ],
  },
  {
    it: 'do not let types run in a circle through folders',
    files: {
      'codegen/kind.ts': "import type { Cel } from './cel/type.ts';",
      'codegen/cel/type.ts': "import { nodes } from '../kind.ts';",
    },
    violations: [
      'codegen/cel/type.ts -> codegen/kind.ts -> codegen/cel/type.ts is a cycle of folders: move the types to the folder that knows less',
    ],
  },
  {
    it: 'let types run in a circle inside one folder',
    files: {
      'src/api/a.ts': "import type { B } from './b.ts';",
      'src/api/b.ts': "import { a } from './a.ts';",
    },
  },
];
