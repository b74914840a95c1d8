import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REASONS } from '../../../src/api/reasons.ts';
import { MESH_ENDPOINTS } from '../../../src/api/reasons/mesh-endpoints.ts';
import { isRecord } from '../../../src/api/json.ts';
import { readObjects } from '../../../src/tools/check/objects.ts';
import { runCheck } from '../../../src/tools/check/command.ts';
import { runTrace } from '../../../src/tools/trace/command.ts';
import { EndpointsScene } from '../controllers/mesh-endpoints/scene.ts';
import { makeFolders } from '../files/folder.ts';
import { captureConsole } from './console.ts';
import { parseOutput } from './output.ts';

/** The documents of a world by their kinds, and its other files by their names; a mistake changes some. */
type World = Readonly<Record<string, string>>;

/** What makes a world from another. */
export type Change = (world: World) => World;

/** A device behind a route, with all that it needs. */
const RIGHT: World = {
  MeshTailnet: `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata:
  name: example
spec:
  tailnet: example.ts.net
`,
  MeshEndpoints: `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata:
  name: web
  namespace: default
spec:
  tailnet: example.ts.net
  endpoints:
    - name: web-1
      meshIP: 100.64.0.11
      meshFQDN: web-1.example.ts.net
      port: 8080
      protocol: HTTP
      healthCheck:
        enabled: true
        path: /healthz
`,
  GatewayClass: `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata:
  name: envoy
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
`,
  Gateway: `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: public
  namespace: default
spec:
  gatewayClassName: envoy
  listeners:
    - name: http
      protocol: HTTP
      port: 80
`,
  HTTPRoute: `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: default
spec:
  parentRefs:
    - name: public
  hostnames:
    - web.example.com
  rules:
    - backendRefs:
        - group: mesh-gateway.dev
          kind: MeshEndpoints
          name: web
          port: 8080
`,
};

/** Replaces a text of the object of a kind, where it is first. */
export function edit(kind: string, from: string, to: string): Change {
  return world => {
    const before = world[kind] ?? '';
    if (!before.includes(from)) throw new Error(`${kind} has no ${JSON.stringify(from)}`);
    return { ...world, [kind]: before.replace(from, () => to) };
  };
}

/** Adds text to the end of the object of a kind. */
export function append(kind: string, text: string): Change {
  return world => ({ ...world, [kind]: `${world[kind] ?? ''}${text}\n` });
}

/** Adds a document, or several. */
export function add(text: string): Change {
  return world => ({ ...world, [`${Object.keys(world).length}`]: `${text.trim()}\n` });
}

/** Removes the object of a kind. */
export function without(...kinds: readonly string[]): Change {
  return world => Object.fromEntries(Object.entries(world).filter(([kind]) => !kinds.includes(kind)));
}

/** Adds a file beside that of the documents. */
export function file(name: string, text: string): Change {
  return world => ({ ...world, [`${FILE}${name}`]: text });
}

const FILE = 'file:';

/** Nothing but a text. */
export function only(text: string): Change {
  return () => ({ only: text });
}

/** The head of an object in namespace default. */
export function head(apiVersion: string, kind: string, name: string): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: default}\n`;
}

/** The severity and reason of a finding, its field, and the fix; where it has none, what is wrong. */
type Expected = readonly [is: string, at: string, fix: string];

/** What a user has done, and what the tools find. */
export type Row = {
  readonly input: string;
  readonly changes: readonly Change[];
  readonly finds: readonly Expected[];
};

/** A mistake, and what is found. */
export function mistake(input: string, changes: Change | readonly Change[], ...finds: Expected[]): Row {
  return { input, changes: typeof changes === 'function' ? [changes] : changes, finds };
}

type Problem = {
  readonly severity: string;
  readonly reason: string;
  readonly about?: unknown;
  readonly at?: string;
  readonly endpoint?: string;
  readonly text: string;
  readonly fix?: string;
};

/** What a row leads to: 0 for notes alone. */
function exitOf(finds: readonly Expected[]): number {
  return finds.some(([is]) => !is.startsWith('note')) ? 1 : 0;
}

/** Tests each row: check finds this and exits so, and trace and the controller contradict it in nothing. */
export function testMistakes(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    const printed = captureConsole();
    it.each(rows)('$input', async ({ changes, finds }) => {
      const world = changes.reduce((before, change) => change(before), RIGHT);
      const isFile = ([key]: readonly [string, string]) => key.startsWith(FILE);
      const files = Object.entries(world).filter(isFile);
      const documents = Object.entries(world).filter(each => !isFile(each));
      const text = documents.map(([, document]) => document).join('---\n');
      const { folder } = makeFolders();
      mkdirSync(folder);
      for (const [name, content] of [['all.yaml', text] as const, ...files])
        writeFileSync(join(folder, name.replace(FILE, '')), content);
      const exit = await runCheck(['--output', 'json', folder], {});
      const { problems } = parseOutput(printed.out.at(-1) ?? '') as { readonly problems: readonly Problem[] };
      expect(
        problems.map(({ severity, reason, at = '', text: what, fix }) => [
          `${severity} ${reason}`,
          at,
          (fix ?? what).replaceAll(folder, 'FOLDER'),
        ]),
      ).toEqual(finds);
      expect(exit).toBe(exitOf(finds));
      const traced = await tracedIn(folder, printed.out);
      expect(traced.exit === 1 || traced.exit === 3 ? exit : 1).toBe(1);
      expect(idsOf(problems)).toEqual(expect.arrayContaining(idsOf(traced.problems)));
      const ofParents = problems.filter(({ at }) => at?.startsWith('spec.parentRefs'));
      if (traced.exit !== 2) expect(idsOf(traced.problems)).toEqual(expect.arrayContaining(idsOf(ofParents)));
      if (ofParents.length > 0) expect(traced.exit).toBeGreaterThan(0);
      await expectStatus(text, problems);
    });
  });
}

async function tracedIn(folder: string, out: readonly string[]) {
  const exit = await runTrace(['--all', '--output', 'json', '--file', folder], {}).catch(() => 2);
  type WithProblems = { readonly problems: readonly Problem[] };
  const { routes = [] } = parseOutput(out.at(-1) ?? '') as {
    readonly routes?: readonly (WithProblems & { readonly rules: readonly WithProblems[] })[];
  };
  return {
    exit,
    problems: routes
      .flatMap(({ problems, rules }) => [{ problems }, ...rules])
      .flatMap(each => each.problems),
  };
}

function idsOf(problems: readonly Problem[]): string[] {
  return problems.map(({ reason, about, at, endpoint }) => JSON.stringify([reason, about, at, endpoint]));
}

/** The reasons for which a route does not get what it names of a MeshEndpoints. */
const OF_ROUTES = Object.keys(MESH_ENDPOINTS['MeshEndpoints RoutesResolved']).filter(
  reason => REASONS[reason as keyof typeof REASONS].severity === 'error',
);

const UNREAD: readonly string[] = ['Invalid', 'NotRendered', 'Syntax', 'UnknownKind'];

/** Whether the status of the MeshEndpoints has what check finds, where an API server accepts all objects. */
async function expectStatus(text: string, problems: readonly Problem[]): Promise<void> {
  const { objects, findings } = readObjects([{ name: 'all.yaml', text }]);
  // What devices are like is known once they are found.
  if (findings.some(({ reason }) => UNREAD.includes(reason)) || text.includes('tagSelectors:')) return;
  const stored = objects.flatMap(({ resource, fields }) => (resource ? [withPool(fields)] : []));
  const scene = await EndpointsScene.start();
  await scene.observe(...stored);
  const reported = objects.flatMap(({ resource }) => {
    if (resource?.kind !== 'MeshEndpoints') return [];
    const status = scene.runtime.memory.read.get({
      kind: 'MeshEndpoints',
      namespace: resource.metadata.namespace ?? 'default',
      name: resource.metadata.name,
    })?.status;
    const resolved = status?.conditions?.find(({ type }) => type === 'RoutesResolved');
    return resolved?.status === 'False' ? [resolved.reason] : [];
  });
  const found = problems.map(({ reason }) => reason);
  expect(found).toEqual(expect.arrayContaining(reported));
  const expected = problems.filter(
    each => each.severity === 'error' && OF_ROUTES.includes(each.reason) && each.at?.includes('backendRefs'),
  );
  // What does not exist has no status.
  if (expected.some(({ reason }) => reason !== 'BackendNotFound')) expect(reported).not.toEqual([]);
}

/** A MeshTailnet as it is once its pool is ready. */
function withPool(object: Readonly<Record<string, unknown>>): object {
  if (object['kind'] !== 'MeshTailnet' || object['status'] !== undefined) return object;
  const { pool } = isRecord(object['spec']) ? object['spec'] : {};
  if (isRecord(pool) && pool['mode'] === 'External') return object;
  return { ...object, status: { pool: { ready: 2, desired: 2, proxyAddress: '10.96.0.7:1055' } } };
}
