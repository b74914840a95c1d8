import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import type { Software } from './node-files.ts';

const run = promisify(execFile);

/** A component of a bill of materials in the format of CycloneDX. */
type Component = {
  readonly 'bom-ref': string;
  readonly scope?: string;
  readonly properties?: readonly unknown[];
};

/** The parts of npm's bill of materials that are changed. */
export type Bill = {
  readonly serialNumber?: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
};

/** All packages of a project as npm lists them, also those that only build and test it. */
export async function listAll(project: string): Promise<Bill> {
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
  const { stdout } = await run('npm', args, { cwd: project, maxBuffer: 1e8 });
  return JSON.parse(stdout) as Bill;
}

/** The version that a bill is of. */
export type Shipped = { readonly name: string; readonly version: string; readonly seconds: number };

/** The bill of what ships: packages that are bundled, by name@version, and other software. */
export function billOf(
  all: Bill,
  { name, version, seconds }: Shipped,
  bundled: readonly string[],
  software: readonly Software[] = [],
): Bill {
  const ships = new Set(bundled);
  const found = all.components.filter(component => ships.has(component['bom-ref']));
  const missing = bundled.filter(ref => !found.some(component => component['bom-ref'] === ref));
  if (missing.length > 0) throw new Error(`package-lock.json lacks ${missing.join(', ')}: run npm install`);
  const libraries = found.map(component => ({ ...component, scope: 'required', properties: [] }));
  const others = software.map(each => ({ 'bom-ref': each.purl, type: 'application', ...each }));
  const { component: own } = all.metadata;
  const root = own['bom-ref'];
  const dependencies = all.dependencies
    .filter(({ ref }) => ref === root || ships.has(ref))
    .map(({ ref, dependsOn = [] }) => ({
      ref,
      dependsOn: [
        ...dependsOn.filter(other => ships.has(other)),
        ...(ref === root ? software.map(({ purl }) => purl) : []),
      ],
    }));
  const bill = {
    ...all,
    metadata: {
      ...all.metadata,
      timestamp: new Date(seconds * 1000).toISOString(),
      component: { ...own, name, version },
    },
    components: [...libraries, ...others],
    dependencies,
  };
  return { ...bill, serialNumber: `urn:uuid:${uuidOf(JSON.stringify({ ...bill, serialNumber: '' }))}` };
}

/** A UUID that is made of a text (version 8, variant 1). */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`];
  return [...parts, hex.slice(20, 32)].join('-');
}
