import { isGenerated, isProduct } from './places.ts';
import type { TextFile, Violations } from './source.ts';

/** Written with brackets, so that this file does not mention them itself. */
const MACHINE_PATH = /(?<![\w.~}-])[/](?:work|root|home|Users)[/][\w.-]*/;
const TEMPORARY_PATH = /(?<![\w.~}-])[/]tmp[/][\w.-]*/;

/** The product speaks of itself alone: no file mentions where it lay on a developer's machine. */
export function noMachinePath(files: readonly TextFile[]): Violations {
  return [
    ...linesWith(
      files,
      MACHINE_PATH,
      found => `${found} is a path of one machine: write it from the project's root`,
    ),
    ...linesWith(
      files.filter(({ path }) => path.endsWith('.md') || path.startsWith('docs/')),
      TEMPORARY_PATH,
      found => `${found} is a path of one machine: write a path that readers have`,
    ),
  ];
}

/** Packages come from the registry that whoever installs has configured. */
export function noRegistryHost(files: readonly TextFile[]): Violations {
  const locks = files.filter(({ path }) => path.endsWith('package-lock.json'));
  return linesWith(
    locks,
    /"resolved": "https?:[^"]*"/,
    () =>
      'names a registry: keep omit-lockfile-registry-resolved=true in .npmrc and recreate the file with npm install',
  );
}

/** The API group stands in one place, from which all that is written by hand takes it. */
export function groupInOnePlace(files: readonly TextFile[]): Violations {
  const schema = files.find(({ path }) => path === GROUP_FILE)?.text ?? '';
  const group = /"group": "([^"]+)"/.exec(schema)?.[1];
  if (group === undefined) return [`${GROUP_FILE}: does not name the API group: write { "group": "..." }`];
  return linesWith(
    files.filter(({ path }) => isProduct(path) && !isGenerated(path)),
    new RegExp(group.replaceAll('.', '\\.')),
    () => 'names the API group: take GROUP from src/api/generated/kinds.ts, or in codegen from the kind',
  );
}

const GROUP_FILE = 'schema/group.json';

function linesWith(
  files: readonly TextFile[],
  pattern: RegExp,
  messageOf: (found: string) => string,
): Violations {
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      const found = pattern.exec(line);
      return found ? [`${path}:${index + 1}: ${messageOf(found[0])}`] : [];
    }),
  );
}
