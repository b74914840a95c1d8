import { importsOf } from './imports.ts';
import { isPermitted, listed, matches } from './permission.ts';
import type { Permission } from './permission.ts';
import { COMPOSITION_ROOTS, isCompositionRoot, isProduct, isTest } from './places.ts';
import { at } from './source.ts';
import type { Source, Violations } from './source.ts';

const ALL_FOLDERS_OF_SRC = ['src/*/'];
const ROOTS_OF_SRC = COMPOSITION_ROOTS.filter(root => root.startsWith('src/'));

/** What each controller may import: of what works outside of the cluster, ports and data. */
const FOR_CONTROLLERS = [
  'src/api/',
  'src/traffic/',
  'src/telemetry/',
  'src/store/',
  'src/control/control.ts',
  'src/health/check.ts',
  'src/health/health.ts',
  'src/health/threshold.ts',
  'src/runtime/',
];

/**
 * Who may import whom; everyone may import from its own folder. A missing edge is a decision, so that an edge is
 * added here first, with a reason in the commit, or what is needed is handed in as an argument.
 */
const IMPORT_MAP: Readonly<Record<string, readonly Permission[]>> = {
  'src/api/': [],

  'src/telemetry/': ['src/api/'],
  'src/traffic/': ['src/api/'],

  // What is derived from objects is in store/traffic, so that all processes share it.
  'src/store/': ['src/api/', 'src/traffic/'],
  'src/control/': ['src/api/', 'src/telemetry/'],
  'src/health/': ['src/api/', 'src/telemetry/'],
  'src/relay/': ['src/api/', 'src/telemetry/'],
  'src/serving/': ['src/api/', 'src/telemetry/'],

  'src/kubernetes/': ['src/api/', 'src/telemetry/', 'src/store/'],
  'src/files/': ['src/api/', 'src/telemetry/', 'src/store/'],
  'src/runtime/': ['src/api/', 'src/telemetry/', 'src/store/'],

  // The registry, which roots start and from which manifests take access, and a folder for each controller.
  'src/controllers/registry.ts': [
    'src/api/',
    'src/traffic/',
    'src/store/',
    'src/kubernetes/access.ts',
    'src/runtime/',
    'src/controllers/*/',
  ],
  'src/controllers/mesh-tailnet/': [
    ...FOR_CONTROLLERS,
    { types: 'src/controllers/mesh-endpoints/relay-ports.ts' },
    { types: 'src/controllers/mesh-endpoints/vip-services.ts' },
  ],
  'src/controllers/vip-services/': [
    ...FOR_CONTROLLERS,
    { types: 'src/controllers/mesh-endpoints/vip-services.ts' },
  ],
  'src/controllers/*/': FOR_CONTROLLERS,
  'src/extension/': ['src/api/', 'src/traffic/', 'src/telemetry/', 'src/store/'],

  'src/process/': [
    'src/api/',
    'src/traffic/',
    'src/telemetry/',
    'src/store/',
    'src/runtime/',
    'src/extension/',
  ],

  // What a user runs by hand, which answers from the code of the processes.
  'src/tools/': [
    ...['src/api/', 'src/traffic/', 'src/store/', 'src/files/', 'src/process/addresses.ts'],
    // Reads of a cluster.
    ...['src/kubernetes/auth/', 'src/kubernetes/served-kinds.ts', 'src/kubernetes/transport/'],
    'src/runtime/clock.ts',
  ],
  'src/library/': ['src/api/'],

  'src/index.ts': ['src/api/', 'src/library/'],
  ...Object.fromEntries(ROOTS_OF_SRC.map(root => [root, ALL_FOLDERS_OF_SRC])),
  'src/cli.ts': [...ALL_FOLDERS_OF_SRC, ...ROOTS_OF_SRC, 'synth/'],

  'synth/': [
    ...['src/api/', 'src/controllers/registry.ts', 'src/telemetry/*metrics.ts', 'src/traffic/access.ts'],
    // A pool that a user runs has the objects of one that the operator runs.
    'src/controllers/mesh-tailnet/pool/objects.ts',
  ],
  // The page of reasons is generated from their declarations, which import nothing that is generated.
  'codegen/': ['src/api/reasons.ts', { types: 'src/api/reasons/' }],

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

/** Where a file belongs: a folder of src, a controller, a file beside one of these, or a folder at the root. */
function homeOf(path: string): string {
  const depth = path.startsWith('src/controllers/') ? 3 : path.startsWith('src/') ? 2 : 1;
  const parts = path.split('/');
  return parts.length <= depth ? path : `${parts.slice(0, depth).join('/')}/`;
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
