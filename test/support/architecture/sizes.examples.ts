import type { Example } from './example.ts';

const long = (lines: number) => '  work();\n'.repeat(lines);

/** What is too long and what is not. */
export const sizeExamples: readonly Example[] = [
  {
    it: 'are short enough to be read at once',
    files: { 'src/api/a.ts': long(501), 'test/a.test.ts': long(501) },
    violations: [
      'src/api/a.ts: has 501 lines, and at most 500 are allowed: split it by idea',
      'test/a.test.ts: has 501 lines, and at most 500 are allowed: split it by idea',
    ],
  },
  {
    it: 'count in all forms: functions, arrow functions, methods and constructors',
    files: {
      'src/api/a.ts': `function a() {\n${long(79)}}\nconst b = () => {\n${long(79)}};`,
      'src/api/c.ts': `class C {\n  c() {\n${long(79)}}\nconstructor() {\n${long(79)}}}`,
      'src/api/d.ts': `each(() => {\n${long(79)}});`,
    },
    violations: [
      'src/api/a.ts:1: a has 81 lines, and at most 80 are allowed: name its parts',
      'src/api/a.ts:82: b has 81 lines, and at most 80 are allowed: name its parts',
      'src/api/c.ts:2: c has 81 lines, and at most 80 are allowed: name its parts',
      'src/api/c.ts:83: constructor has 81 lines, and at most 80 are allowed: name its parts',
      'src/api/d.ts:1: a function without a name has 81 lines, and at most 80 are allowed: name its parts',
    ],
  },
  {
    it: 'may reach the limits, and pass them where they are generated or blocks of tests',
    files: {
      'src/api/a.ts': `function a() {\n${long(78)}}\n${long(400)}`,
      'src/api/generated/a.ts': `function a() {\n${long(600)}}`,
      'test/a.test.ts': `describe('a', () => {\n it.each([1])('b', () => {\n${long(90)}});\n});`,
    },
  },
];
