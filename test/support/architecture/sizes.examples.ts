import type { Example } from './example.ts';

const long = (lines: number) => '  work();\n'.repeat(lines);

/** What is too long and what is not. */
export const sizeExamples: readonly Example[] = [
  {
    it: 'are short enough to be read at once',
    files: { 'src/api/a.ts': long(251), 'test/a.test.ts': long(401) },
    says: [
      'src/api/a.ts: has 251 lines, and at most 250 are allowed: split it by idea',
      'test/a.test.ts: has 401 lines, and at most 400 are allowed: split it by idea',
    ],
  },
  {
    it: 'count in all forms: functions, arrow functions, methods and constructors',
    files: {
      'src/api/a.ts': `function a() {\n${long(49)}}\nconst b = () => {\n${long(49)}};`,
      'src/api/c.ts': `class C {\n  c() {\n${long(49)}}\nconstructor() {\n${long(49)}}}`,
      'src/api/d.ts': `each(() => {\n${long(49)}});`,
    },
    says: [
      'src/api/a.ts:1: a has 51 lines, and at most 50 are allowed: name its parts',
      'src/api/a.ts:52: b has 51 lines, and at most 50 are allowed: name its parts',
      'src/api/c.ts:2: c has 51 lines, and at most 50 are allowed: name its parts',
      'src/api/c.ts:53: constructor has 51 lines, and at most 50 are allowed: name its parts',
      'src/api/d.ts:1: a function without a name has 51 lines, and at most 50 are allowed: name its parts',
    ],
  },
  {
    it: 'may reach the limits, and pass them where they are generated or blocks of tests',
    files: {
      'src/api/a.ts': `function a() {\n${long(48)}}\n${long(200)}`,
      'src/api/generated/a.ts': `function a() {\n${long(300)}}`,
      'test/a.test.ts': `describe('a', () => {\n it.each([1])('b', () => {\n${long(60)}});\n});`,
    },
  },
];
