import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { API_VERSION, GROUP } from '../src/api/generated/kinds.ts';
import { GATEWAY_GROUP } from '../src/api/objects/gateway-api.ts';
import type { KubeObject } from '../lab/kube/object.ts';
import type { OnStep } from '../lab/process/steps.ts';
import { builtProduct } from './bundled.ts';
import { median } from './figures.ts';
import type { Bench, Figure } from './figures.ts';
import { startApiServer } from './kubernetes/api-server.ts';
import { addressOf } from './many-endpoints.ts';
import { eachOf } from './translation/objects.ts';

const FOLDER = join('.cache', 'bench', 'check');
/** MeshEndpoints with a route each. */
const [PAIRS, PAIRS_OF_CLUSTER] = [2_500, 1_000];
const PAIRS_OF_FILE = 50;
const DOMAIN = 'example.ts.net';

const ROUNDS = 5;

/** Measures `mesh-gateway check` on a folder of YAML and on a cluster, from the start of Node to its end. */
export const check: Bench = {
  duration: () => ({ aboutMs: 90_000 }),
  run: async onStep => {
    const product = builtProduct();
    onStep(`check of a folder, ${ROUNDS + 1} times`);
    const folder = folderFigure(product);
    onStep('an API server with objects');
    return [folder, await clusterFigure(product, onStep)];
  },
};

function folderFigure(product: string): Figure {
  const count = (errors: number) =>
    `${2 * PAIRS + 1 + errors} objects in ${PAIRS / PAIRS_OF_FILE + 1 + errors} files: ${errors} error`;
  const run = (errors: number) => secondsOf([product, 'check', FOLDER], count(errors));
  writeObjects();
  const seconds = Array.from({ length: ROUNDS }, () => run(0));
  // The figure counts only if each object is checked against the others.
  writeFileSync(join(FOLDER, 'wrong.yaml'), stringify(routeTo('wrong', `service-${PAIRS}`)));
  run(1);
  rmSync(FOLDER, { recursive: true });
  const name = `check ${2 * PAIRS} objects in ${PAIRS / PAIRS_OF_FILE} files, whole process`;
  return { name, value: median(seconds), unit: 's', aim: 3 };
}

/** On an API server of its own. */
async function clusterFigure(product: string, onStep: OnStep): Promise<Figure> {
  const { client, kubeconfig, stop } = await startApiServer();
  try {
    const pairs = Array.from({ length: PAIRS_OF_CLUSTER }, (_, index) => pairOf(index));
    await eachOf([...SHARED, ...pairs.flat()], async object => {
      await client.create(object);
    });
    onStep(`check of the cluster, ${ROUNDS} times`);
    const command = [product, 'check', `--kubeconfig=${kubeconfig}`];
    const count = `${2 * PAIRS_OF_CLUSTER + 1} objects`;
    const seconds = Array.from({ length: ROUNDS }, () => secondsOf(command, count));
    const name = `check ${2 * PAIRS_OF_CLUSTER} objects of a cluster, whole process`;
    return { name, value: median(seconds), unit: 's', aim: 5 };
  } finally {
    await stop();
  }
}

function secondsOf(command: readonly string[], count: string): number {
  const start = process.hrtime.bigint();
  const { stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  if (!stderr.includes(count))
    throw new Error(`what was checked is not the load: ${stderr}${stdout.slice(0, 1000)}`);
  return seconds;
}

function writeObjects(): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  writeFile('shared', SHARED);
  for (let first = 0; first < PAIRS; first += PAIRS_OF_FILE) {
    const pairs = Array.from({ length: PAIRS_OF_FILE }, (_, at) => pairOf(first + at));
    writeFile(`services-${first}`, pairs.flat());
  }
}

function writeFile(name: string, objects: readonly object[]): void {
  const documents = objects.map(object => stringify(object));
  writeFileSync(join(FOLDER, `${name}.yaml`), documents.join('---\n'));
}

const GATEWAY = `${GATEWAY_GROUP}/v1`;

function objectOf(kind: string, name: string, apiVersion = API_VERSION) {
  return { apiVersion, kind, metadata: { name, namespace: 'default' } };
}

/** The Gateway is read, and does not count. */
const SHARED: readonly KubeObject[] = [
  { apiVersion: API_VERSION, kind: 'MeshTailnet', metadata: { name: 'example' }, spec: { tailnet: DOMAIN } },
  {
    ...objectOf('Gateway', 'public', GATEWAY),
    spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  },
];

/** A MeshEndpoints with two endpoints, and its route. */
function pairOf(index: number): readonly KubeObject[] {
  const name = `service-${index}`;
  const endpoints = [0, 1].map(at => ({
    name: `e${at}`,
    meshIP: addressOf(2 * index + at),
    meshFQDN: `device-${index}-${at}.${DOMAIN}`,
    port: 8080,
    protocol: 'HTTP',
    healthCheck: { enabled: true, path: '/healthz' },
  }));
  return [{ ...objectOf('MeshEndpoints', name), spec: { tailnet: DOMAIN, endpoints } }, routeTo(name, name)];
}

function routeTo(name: string, backend: string): KubeObject {
  return {
    ...objectOf('HTTPRoute', name, GATEWAY),
    spec: {
      parentRefs: [{ name: 'public' }],
      hostnames: [`${name}.example.com`],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [{ group: GROUP, kind: 'MeshEndpoints', name: backend, port: 8080 }],
        },
      ],
    },
  };
}
