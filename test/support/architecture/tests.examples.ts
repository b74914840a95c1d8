import type { Example } from './example.ts';

/** Which tests do not run. */
export const testRunExamples: readonly Example[] = [
  {
    it: 'run, all of them',
    files: {
      'test/a.test.ts':
        "it.skip('a', a);\ndescribe.only('b', b);\ntest.concurrent.todo('c');\nit.only.each([1])('d', d);\nit('e', { skip: true }, e);",
    },
    violations: [
      'test/a.test.ts:1: it.skip: let it run, or delete it',
      'test/a.test.ts:2: describe.only: let it run, or delete it',
      'test/a.test.ts:3: test.concurrent.todo: let it run, or delete it',
      'test/a.test.ts:4: it.only: let it run, or delete it',
      'test/a.test.ts:5: skip: true: let it run, or delete it',
    ],
  },
  {
    it: 'may need a tool that is not everywhere',
    files: { 'test/a.test.ts': "it.skipIf(!promtool)('a', a);\nlist.only('b');\nrun({ skip: true });" },
  },
];

/** Which tests cannot fail. */
export const testExpectationExamples: readonly Example[] = [
  {
    it: 'expect something',
    files: {
      'test/a.test.ts': "it('a', () => {\n  const expected = run();\n  console.log(expected);\n});",
      'test/contract/b.ts':
        "it.each([1, 2])('b', async () => {\n  await run();\n});\ntest.concurrent('c', run);",
    },
    violations: [
      'test/a.test.ts:1: this test expects nothing: assert what must be true',
      'test/contract/b.ts:1: this test expects nothing: assert what must be true',
      'test/contract/b.ts:4: this test expects nothing: assert what must be true',
    ],
  },
  {
    it: 'may leave that to a function with such a name',
    files: {
      'test/a.test.ts': [
        "it('a', () => expect(1).toBe(1));",
        "it.each(cases.filter(isValid))('b', () => fc.assert(property));",
        "it.skipIf(isSlow)('c', () => { for (const a of all) expectValid(a); });",
        "it('d', expectAll);",
        "it('e', () => expect.soft(1).toBe(1));",
        "/a/.test('no test');",
      ].join('\n'),
    },
  },
];
