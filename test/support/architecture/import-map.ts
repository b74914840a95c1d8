import { importsOf } from './imports.ts';
import { isPermitted, listed, matches } from './permission.ts';
import type { Permission } from './permission.ts';
import { COMPOSITION_ROOTS, isCompositionRoot, isProduct, isTest } from './places.ts';
import { at } from './source.ts';
import type { Source, Violations } from './source.ts';

const PORTS = ['src/control/control.ts', 'src/external-targets/external-targets.ts', 'src/health/health.ts'];
const ALL_FOLDERS_OF_SRC = ['src/*/'];
const ROOTS_OF_SRC = COMPOSITION_ROOTS.filter(root => root.startsWith('src/'));

/**
 * Who may import whom; everyone may import from its own folder. A missing edge is a decision, so that an edge is
 * added here first, with a reason in the commit, or what is needed is handed in as an argument.
 */
const IMPORT_MAP: Readonly<Record<string, readonly Permission[]>> = {
  'src/api/': [],

  'src/telemetry/': ['src/api/'],
  'src/traffic/': ['src/api/'],

  'src/store/': ['src/api/'],
  'src/control/': ['src/api/', 'src/telemetry/'],
  'src/external-targets/': ['src/api/', { types: 'src/traffic/address-guard.ts' }],
  'src/health/': ['src/api/', 'src/telemetry/'],
  'src/relay/': ['src/api/', 'src/telemetry/'],
  'src/typed-routes/': ['src/api/'],

  'src/kubernetes/': ['src/api/', 'src/telemetry/', 'src/store/'],
  'src/files/': ['src/api/', 'src/telemetry/', 'src/store/'],
  'src/runtime/': ['src/api/', 'src/telemetry/', 'src/store/'],

  // Controllers: one folder for each kind, one for the ConfigMap mesh-trust, and one for the relay ports of pools.
  'src/relay-ports/': [
    'src/api/',
    'src/traffic/',
    'src/runtime/',
    'src/telemetry/',
    'src/store/',
    ...PORTS,
    'src/mesh-tailnet/gather.ts',
    'src/mesh-tailnet/pool/',
    { types: 'src/mesh-endpoints/relay-ports.ts' },
  ],
  // What MeshEndpoints refer to in their namespace.
  'src/endpoint-inputs/': [
    'src/api/',
    'src/traffic/',
    'src/store/',
    ...PORTS,
    { types: 'src/mesh-endpoints/inputs.ts' },
  ],
  'src/mesh-*/': [
    'src/api/',
    'src/traffic/',
    'src/runtime/',
    'src/telemetry/',
    'src/store/',
    ...PORTS,
    'src/health/check.ts',
    'src/health/threshold.ts',
  ],
  'src/extension/': ['src/api/', 'src/traffic/', 'src/telemetry/', 'src/store/'],
  'src/lint/': ['src/api/', 'src/traffic/'],
  'src/explain/': ['src/api/', 'src/traffic/'],
  'src/process/': [
    'src/api/',
    'src/traffic/',
    'src/telemetry/',
    'src/runtime/',
    'src/extension/',
    'src/store/',
  ],

  // The registry of controllers, which roots start and from which manifests take access.
  'src/controllers.ts': [
    'src/api/',
    'src/mesh-*/',
    'src/relay-ports/',
    'src/runtime/',
    'src/traffic/',
    'src/store/',
    'src/kubernetes/access.ts',
  ],
  'src/index.ts': ['src/api/', 'src/typed-routes/'],
  ...Object.fromEntries(ROOTS_OF_SRC.map(root => [root, [...ALL_FOLDERS_OF_SRC, 'src/controllers.ts']])),
  'src/cli.ts': [...ALL_FOLDERS_OF_SRC, ...ROOTS_OF_SRC, 'synth/'],

  'synth/': ['src/api/', 'src/controllers.ts', 'src/telemetry/*metrics.ts', 'src/traffic/access.ts'],
  'codegen/': [],

  // Real parts for tests, benches and `npm start`; nothing of the product imports them.
  'lab/': [...ALL_FOLDERS_OF_SRC, 'src/standalone.ts'],
  'bench/': [...ALL_FOLDERS_OF_SRC, 'lab/', 'src/index.ts', 'codegen/', 'synth/'],
  'test/': ['*', '*/'],
};

/** Files import only what the map lets their folder import; a folder that the map lacks is reported once. */
export function importMap(sources: readonly Source[]): Violations {
  const homes = new Set(sources.map(({ path }) => homeOf(path)));
  const unknown = [...homes].filter(home => permissionsOf(home) === undefined);
  return [
    ...unknown.map(
      home =>
        `${home}: is not in the import map: add it with what it may import (a missing edge is a decision)`,
    ),
    ...sources.flatMap(forbiddenImports),
  ];
}

function forbiddenImports(source: Source): Violations {
  const home = homeOf(source.path);
  const permissions = permissionsOf(home);
  if (!permissions) return [];
  return importsOf(source).flatMap(found => {
    if (!('file' in found) || homeOf(found.file) === home) return [];
    if (isPermitted(permissions, found.file, found.isType)) return [];
    return [
      at(source, found.node, `imports ${found.file}: ${adviceFor(source.path, found.file, permissions)}`),
    ];
  });
}

/** Where a file belongs: a folder of src, a file directly in src, or a folder at the root. */
function homeOf(path: string): string {
  const [first = '', second = '', third] = path.split('/');
  if (first !== 'src') return path.includes('/') ? `${first}/` : first;
  return third === undefined ? `src/${second}` : `src/${second}/`;
}

function permissionsOf(home: string): readonly Permission[] | undefined {
  return Object.entries(IMPORT_MAP).find(([pattern]) => matches(pattern, home))?.[1];
}

function adviceFor(from: string, to: string, permissions: readonly Permission[]): string {
  if (isTest(to) && isProduct(from)) return 'product code never imports test/: move what both need into src/';
  if (isTest(to)) return 'only tests import test/: move what both need into src/';
  if (to.startsWith('lab/')) return 'only benches and tests import lab/: move what both need into src/';
  if (isCompositionRoot(to)) {
    return 'only src/cli.ts and lab/commands/start.ts import composition roots: move what is needed into a folder of src/';
  }
  const home = homeOf(from);
  return `${home} may import ${listed(permissions)}: hand in what is needed, or decide on an edge in the import map`;
}
