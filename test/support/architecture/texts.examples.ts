import type { Example } from './example.ts';

/** A path as it would stand in a file, spelt so that this file does not hold it. */
const below = (...folders: readonly string[]) => `/${folders.join('/')}/main`;

/** Which paths only one machine has. */
export const machinePathExamples: readonly Example[] = [
  {
    it: 'do not lead to one machine',
    files: {
      'src/api/a.ts': `// first line\n// see ${below('work')}/a.ts`,
      'docs/a.md': `\`${below('root')}\`\ncd ${below('tmp', 'a')}`,
      'README.md': `(${below('home', 'me')})`,
    },
    violations: [
      `src/api/a.ts:2: ${below('work')} is a path of one machine: write it from the project's root`,
      `docs/a.md:1: ${below('root')} is a path of one machine: write it from the project's root`,
      `README.md:1: ${below('home').replace('main', 'me')} is a path of one machine: write it from the project's root`,
      `docs/a.md:2: ${below('tmp').replace('main', 'a')} is a path of one machine: write a path that readers have`,
    ],
  },
  {
    it: 'may be parts of other paths, of addresses and, outside docs, of temporary files',
    files: {
      'docs/a.md': `docs${below('work')} https://example.com${below('root')} the root/main folder`,
      'test/a.test.ts': `const socket = '${below('tmp')}';`,
    },
  },
];

/** Where packages may come from in the lock file. */
export const registryExamples: readonly Example[] = [
  {
    it: 'do not name a registry',
    files: {
      'package-lock.json': '{\n  "resolved": "https://registry.example.com/ajv.tgz",\n  "version": "1"\n}',
    },
    violations: [
      'package-lock.json:2: names a registry: keep omit-lockfile-registry-resolved=true in .npmrc and recreate the file with npm install',
    ],
  },
  {
    it: 'may have checksums and links',
    files: {
      'package-lock.json': '{ "integrity": "sha512-a", "funding": { "url": "https://example.com" } }',
    },
  },
];

const GROUP_FILE = { 'schema/group.json': '{ "group": "example.dev" }' };

/** Where the API group may stand. */
export const groupExamples: readonly Example[] = [
  {
    it: 'do not stand in code that is written by hand',
    files: {
      ...GROUP_FILE,
      'src/tools/check/validity.ts': "\nconst group = 'example.dev/v1';",
      'codegen/crd.ts': '// of example.dev',
    },
    violations: [
      'src/tools/check/validity.ts:2: names the API group: take GROUP from src/api/generated/kinds.ts, or in codegen from the kind',
      'codegen/crd.ts:1: names the API group: take GROUP from src/api/generated/kinds.ts, or in codegen from the kind',
    ],
  },
  {
    it: 'are looked for by the name that the schema gives',
    files: { 'schema/group.json': '{}' },
    violations: ['schema/group.json: does not name the API group: write { "group": "..." }'],
  },
  {
    it: 'stand in the schema, in generated code, in docs and in tests',
    files: {
      ...GROUP_FILE,
      'src/api/generated/kinds.ts': "export const GROUP = 'example.dev';",
      'README.md': 'example.dev',
      'test/a.test.ts': "'example.dev'",
      'src/api/a.ts': "'example-dev'",
    },
  },
];
