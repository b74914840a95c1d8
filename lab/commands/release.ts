/** `npm run release -- --dry-run`: makes the files of a release of the commit that is checked out. */
import { statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeRelease } from '../release/release.ts';
import type { Architecture } from '../release/node-files.ts';
import { EXIT, runMain } from './run-main.ts';

const USAGE = `npm run release -- --dry-run [--out FOLDER] [--only-arch amd64|arm64]

Makes the files of a release from a commit without changes that has the tag of its version, and publishes
none: .github/workflows/release.yaml does. Needs Debian's apt-get and dpkg-deb, and tar.

  --out FOLDER       a new folder for the files, or that of a release to replace; dist/release if not given
  --only-arch NAME   the image of one architecture alone
`;

const project = resolve(import.meta.dirname, '..', '..');

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean', default: false },
      out: { type: 'string', default: join(project, 'dist/release') },
      'only-arch': { type: 'string' },
    },
  });
  if (!values['dry-run'])
    throw new Error(`only --dry-run exists: publishing is up to the workflow\n${USAGE}`);
  const only = values['only-arch'];
  const architectures = (['amd64', 'arm64'] as const).filter(
    (each: Architecture) => only === undefined || each === only,
  );
  if (architectures.length === 0) throw new Error(`--only-arch: ${String(only)} is neither amd64 nor arm64`);
  const out = resolve(values.out);
  const onStep = (step: string) => console.log(`... ${step}`);
  const names = await makeRelease({ project, out, architectures, onStep });
  console.log(`${relative(process.cwd(), out)} has:`);
  for (const name of names) console.log(`${megabytes(statSync(join(out, name)).size)}  ${name}`);
  return EXIT.done;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(2).padStart(8)} MB`;
}

await runMain('release', main);
