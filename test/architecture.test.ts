import { describe, expect, it } from 'vitest';
import { cycleExamples } from './support/architecture/cycles.examples.ts';
import { cycles } from './support/architecture/cycles.ts';
import { documentationExamples } from './support/architecture/documentation.examples.ts';
import { documentedExports } from './support/architecture/documentation.ts';
import { doorExamples } from './support/architecture/doors.examples.ts';
import { doors } from './support/architecture/doors.ts';
import { environmentExamples } from './support/architecture/environment.examples.ts';
import { environmentInRoots } from './support/architecture/environment.ts';
import type { Example } from './support/architecture/example.ts';
import { fragmentExamples } from './support/architecture/fragments.examples.ts';
import { noFragment } from './support/architecture/fragments.ts';
import {
  barrelExamples,
  defaultExportExamples,
  enumExamples,
  vagueNameExamples,
} from './support/architecture/form.examples.ts';
import { noBarrel, noDefaultExport, noEnumOrNamespace, noVagueName } from './support/architecture/form.ts';
import { importMapExamples } from './support/architecture/import-map.examples.ts';
import { importMap } from './support/architecture/import-map.ts';
import { linkExamples } from './support/architecture/links.examples.ts';
import { linksResolve } from './support/architecture/links.ts';
import { readProject } from './support/architecture/project.ts';
import { purityExamples } from './support/architecture/purity.examples.ts';
import { purity } from './support/architecture/purity.ts';
import { sizeExamples } from './support/architecture/sizes.examples.ts';
import { sizes } from './support/architecture/sizes.ts';
import { parseSource } from './support/architecture/source.ts';
import type { Source, TextFile, Violations } from './support/architecture/source.ts';
import { testExpectationExamples, testRunExamples } from './support/architecture/tests.examples.ts';
import { allTestsExpect, allTestsRun } from './support/architecture/tests.ts';
import {
  groupExamples,
  machinePathExamples,
  registryExamples,
} from './support/architecture/texts.examples.ts';
import { groupInOnePlace, noMachinePath, noRegistryHost } from './support/architecture/texts.ts';

const { sources, texts } = readProject();

/** The files to which a rule applies, and the function that parses those of an example. */
type Scope<File> = {
  readonly files: readonly File[];
  readonly read: (path: string, text: string) => File;
};

const code: Scope<Source> = { files: sources, read: parseSource };
const anyText: Scope<TextFile> = { files: texts, read: (path, text) => ({ path, text }) };

/** A rule holds in the project, and its examples prove what it refuses and what it accepts. */
function describeRule<File>(
  subject: string,
  scope: Scope<File>,
  rule: (files: readonly File[]) => Violations,
  examples: readonly Example[],
): void {
  describe(subject, () => {
    it('obey in the whole project', () => {
      const violations = rule(scope.files);
      expect(violations, `\n${violations.join('\n')}\n`).toEqual([]);
    });
    for (const { it: sentence, files, violations = [] } of examples) {
      it(sentence, () => {
        expect(rule(Object.entries(files).map(([path, text]) => scope.read(path, text)))).toEqual(violations);
      });
    }
  });
}

describe('the files of the project', () => {
  it('are found', () => {
    const some = ['src/index.ts', 'codegen/main.ts', 'bench/main.ts', 'test/architecture.test.ts'];
    expect(sources.map(({ path }) => path)).toEqual(expect.arrayContaining(some));
    expect(texts.map(({ path }) => path)).toEqual(expect.arrayContaining(['README.md', 'package-lock.json']));
  });

  it('are not those that git ignores', () => {
    const ignored = texts.filter(({ path }) => /(^|\/)(node_modules|\.git|dist\/js)\//.test(path));
    expect(ignored).toEqual([]);
  });
});

describeRule('imports between folders', code, importMap, importMapExamples);
describeRule('imports of packages', code, doors, doorExamples);
describeRule('imports of files', code, cycles, cycleExamples);
describeRule('files that are pure by name', code, purity, purityExamples);
describeRule('files and functions', code, sizes, sizeExamples);
describeRule('short files', code, noFragment, fragmentExamples);

describe('exceptions from sizes', () => {
  const lines = (count: number) => 'work();\n'.repeat(count);
  const because = 'one switch over all kinds reads better whole';

  it('excuse what they name', () => {
    const long = parseSource('src/api/a.ts', `function a() {\n${lines(79)}}\n${lines(450)}`);
    const exceptions = ['src/api/a.ts', 'src/api/a.ts#a'].map(of => ({ of, because }));
    expect(sizes([long], exceptions)).toEqual([]);
  });

  it('must be needed', () => {
    const short = parseSource('src/api/a.ts', 'function a() {}');
    expect(sizes([short], [{ of: 'src/api/a.ts#a', because }])).toEqual([
      'src/api/a.ts#a: is not too long (any more): remove its exception',
    ]);
  });
});

describeRule('exports', code, noDefaultExport, defaultExportExamples);
describeRule('exports of the product', code, documentedExports, documentationExamples);
describeRule('types', code, noEnumOrNamespace, enumExamples);
describeRule('modules', code, noBarrel, barrelExamples);
describeRule('names of files and folders', code, noVagueName, vagueNameExamples);
describeRule('readers of the environment', code, environmentInRoots, environmentExamples);
describeRule('tests as written', code, allTestsRun, testRunExamples);
describeRule('tests as run', code, allTestsExpect, testExpectationExamples);
describeRule('paths in any file', anyText, noMachinePath, machinePathExamples);
describeRule('links of pages', anyText, linksResolve, linkExamples);
describeRule('lockfiles', anyText, noRegistryHost, registryExamples);
describeRule('mentions of the API group', anyText, groupInOnePlace, groupExamples);

describe('the project', () => {
  const jsonIn = (name: string) =>
    JSON.parse(texts.find(({ path }) => path === name)?.text ?? '{}') as unknown;

  it('is judged in every folder that is compiled', () => {
    const { include } = jsonIn('tsconfig.json') as { readonly include: readonly string[] };
    const folders = include.filter(name => !name.includes('.'));
    const unread = folders.filter(folder => !sources.some(({ path }) => path.startsWith(`${folder}/`)));
    expect(folders).toContain('src');
    expect(unread).toEqual([]);
  });

  it('installs no other package: what it needs is bundled', () => {
    const others = Object.keys(jsonIn('package.json') as object).filter(name => /dependencies/i.test(name));
    expect(others).toEqual(['devDependencies']);
  });
});
