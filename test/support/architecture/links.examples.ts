import type { Example } from './example.ts';

/** Where links of pages may lead. */
export const linkExamples: readonly Example[] = [
  {
    it: 'do not lead to files and headings that do not exist',
    files: {
      'docs/a.md': '\n[b](b.md) [c](../src/c.ts) [d](#d)',
      'docs/c.md': '# Life of a hook\n[e](#life-of-a-call)',
    },
    violations: [
      'docs/a.md:2: docs/b.md does not exist: correct the link',
      'docs/a.md:2: src/c.ts does not exist: correct the link',
      'docs/a.md:2: docs/a.md has no heading #d: correct the link',
      'docs/c.md:2: docs/c.md has no heading #life-of-a-call: correct the link',
    ],
  },
  {
    it: 'lead to files, folders, headings and other hosts',
    files: {
      'README.md': '[a](docs/a.md#the-call-once) [docs](docs) [host](https://example.com/a.md)',
      'docs/a.md': '# A\n## The call, once\n[readme](../README.md) [here](#a)',
    },
  },
];
