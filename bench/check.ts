import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { API_VERSION, GROUP } from '../src/api/generated/kinds.ts';
import { GATEWAY_GROUP } from '../src/api/objects/gateway-api.ts';
import { builtProduct } from './bundled.ts';
import { median } from './figures.ts';
import type { Figure } from './figures.ts';
import { addressOf } from './many-endpoints.ts';

const FOLDER = join('.cache', 'bench', 'check');
/** MeshEndpoints with a route each. */
const PAIRS = 2_500;
const PAIRS_OF_FILE = 50;
const DOMAIN = 'example.ts.net';

/** Measures `mesh-gateway check` on a folder of YAML, from the start of Node to its end. */
export function check(): Promise<readonly Figure[]> {
  const product = builtProduct();
  writeObjects();
  const seconds = Array.from({ length: 5 }, () => secondsOf(product, 0));
  // The figure counts only if each object is checked against the others.
  writeFileSync(join(FOLDER, 'wrong.yaml'), stringify(routeTo('wrong', `service-${PAIRS}`)));
  secondsOf(product, 1);
  rmSync(FOLDER, { recursive: true });
  const name = `check ${2 * PAIRS} objects in ${PAIRS / PAIRS_OF_FILE} files, whole process`;
  return Promise.resolve([{ name, value: median(seconds), unit: 's', aim: 3 }]);
}

function secondsOf(product: string, errors: number): number {
  const start = process.hrtime.bigint();
  const { stdout, stderr } = spawnSync(process.execPath, [product, 'check', FOLDER], { encoding: 'utf8' });
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  const [objects, files] = [2 * PAIRS + 1 + errors, PAIRS / PAIRS_OF_FILE + 1 + errors];
  if (!stderr.includes(`${objects} objects in ${files} files: ${errors} error`))
    throw new Error(`what was checked is not the load: ${stderr}${stdout.slice(0, 1000)}`);
  return seconds;
}

function writeObjects(): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const shared = [
    { ...objectOf('MeshTailnet', 'example'), spec: { tailnet: DOMAIN } },
    {
      ...objectOf('Gateway', 'public', GATEWAY),
      spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
  ];
  writeFile('shared', shared);
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

/** A MeshEndpoints with two endpoints, and its route. */
function pairOf(index: number): readonly object[] {
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

function routeTo(name: string, backend: string): object {
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
