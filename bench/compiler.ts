import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from '@marcbachmann/cel-js';
import { compileRule } from '../codegen/cel/compile.ts';
import { Constants } from '../codegen/cel/scope.ts';
import { celTypeOf } from '../codegen/cel/type.ts';
import { load } from '../codegen/load/load.ts';
import { walk } from '../codegen/walk.ts';
import { API_VERSION } from '../src/api/generated/kinds.ts';
import { validators } from '../src/api/generated/validators.ts';
import { validate } from '../src/api/validation/validate.ts';
import type { OnStep } from '../lab/process/steps.ts';
import { bundled } from './bundled.ts';
import { median, microseconds } from './figures.ts';
import type { Bench, Figure } from './figures.ts';

const ENDPOINTS = 100;
const AUTHORED = 1000;

/** Measures how fast the schemas are compiled, and how fast the generated validators are. */
export const compiler: Bench = {
  duration: () => ({ aboutMs: 60_000 }),
  run: onStep => Promise.resolve([...processFigures(onStep), ...validatorFigures(onStep)]),
};

function validatorFigures(onStep: OnStep): readonly Figure[] {
  onStep('validators');
  const endpoints = Array.from({ length: ENDPOINTS }, (_, index) => endpoint(index));
  const object = objectWith(endpoints);
  checkLoad(endpoints);
  const { shape, structure } = validators.MeshEndpoints;
  const rules = endpointRules();
  return [
    {
      name: `validate ${ENDPOINTS} endpoints, all rules`,
      value: microseconds(() => validate('MeshEndpoints', object)),
      unit: 'us',
      aim: 300,
    },
    {
      name: `validate ${ENDPOINTS} endpoints, without the CEL rules`,
      value: microseconds(() => structure(shape(object))),
      unit: 'us',
      aim: 50,
    },
    {
      name: `${rules.length} CEL rules on ${ENDPOINTS} endpoints, compiled`,
      value: microseconds(() =>
        holdsForAll(
          rules.map(rule => rule.compiled),
          endpoints,
        ),
      ),
      unit: 'us',
    },
    {
      name: 'the same by a CEL library (peer)',
      value: microseconds(
        () =>
          holdsForAll(
            rules.map(rule => rule.interpreted),
            endpoints,
          ),
        50,
      ),
      unit: 'us',
    },
  ];
}

/** Commands that users run. */
function processFigures(onStep: OnStep): readonly Figure[] {
  onStep(`npm run generate, ${RUNS} times`);
  const generate = generateSeconds();
  onStep(`npm run synth, ${RUNS} times`);
  const synth = synthSeconds();
  onStep(`the typed library, ${RUNS} times`);
  return [
    { name: 'npm run generate, whole process', value: generate, unit: 's', aim: 3 },
    { name: 'npm run synth, whole process', value: synth, unit: 's', aim: 2 },
    {
      name: `${AUTHORED} MeshEndpoints with two routes each in the typed library, whole process`,
      value: authoringSeconds(),
      unit: 's',
      aim: 3,
    },
  ];
}

/** An endpoint with common fields: labels, and a health check with a header. */
function endpoint(index: number) {
  return {
    name: `web-${index}`,
    meshIP: `100.64.${index}.7`,
    meshFQDN: `web-${index}.example.ts.net`,
    port: 8000 + index,
    protocol: 'HTTP',
    metadata: { team: 'web' },
    healthCheck: {
      enabled: true,
      type: 'HTTP',
      path: '/healthz',
      interval: '15s',
      timeout: '5s',
      headers: { 'x-probe': 'mesh' },
    },
  };
}

type Endpoint = ReturnType<typeof endpoint>;

function objectWith(endpoints: readonly Endpoint[]) {
  const metadata = { name: 'web', namespace: 'default' };
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata,
    spec: { tailnet: 'example.ts.net', endpoints },
  };
}

/** The figures count only if the whole object is validated: the faults of the last endpoint must be found. */
function checkLoad(endpoints: readonly Endpoint[]): void {
  const [last] = endpoints.slice(-1);
  if (!last || endpoints.length !== ENDPOINTS) throw new Error('the object does not have its endpoints');
  const withLast = (broken: Endpoint) =>
    validate('MeshEndpoints', objectWith([...endpoints.slice(0, -1), broken]));
  if (!withLast(last).valid) throw new Error('the object is not valid');
  if (withLast({ ...last, port: 0 }).valid) throw new Error('the last endpoint is not checked');
  if (withLast({ ...last, protocol: 'UDP' }).valid)
    throw new Error('the rules do not reach the last endpoint');
}

type EndpointRule = {
  readonly compiled: (self: Endpoint) => unknown;
  readonly interpreted: (self: Endpoint) => unknown;
};

/** The rules of the endpoint itself, without functions of Kubernetes, in both forms. */
function endpointRules(): readonly EndpointRule[] {
  const files = readdirSync('schema').map(name => [name, readFileSync(`schema/${name}`, 'utf8')] as const);
  const nodes = load(new Map(files)).flatMap(kind => walk(kind.root));
  const node = nodes.find(located => located.node.title === 'MeshEndpoint')?.node;
  if (!node) throw new Error('there is no MeshEndpoint');
  return node.rules.map(({ rule }) => {
    const js = compileRule(rule, celTypeOf(node), new Constants());
    const interpreted = parse(rule);
    return {
      // eslint-disable-next-line @typescript-eslint/no-implied-eval -- our own compiler's output
      compiled: new Function('self', `return ${js}`) as (self: Endpoint) => unknown,
      interpreted: value => interpreted({ self: value }) as unknown,
    };
  });
}

function holdsForAll(rules: readonly ((self: Endpoint) => unknown)[], endpoints: readonly Endpoint[]): void {
  for (const self of endpoints) {
    for (const rule of rules) if (rule(self) !== true) throw new Error('a rule does not hold');
  }
}

/** From the start of npm to its end. */
function generateSeconds(): number {
  return medianSeconds(() => {
    execFileSync('npm', ['run', '--silent', 'generate'], { stdio: ['ignore', 'ignore', 'inherit'] });
  });
}

/** The same; nothing differs, so nothing is written. */
function synthSeconds(): number {
  return medianSeconds(() => {
    const output = execFileSync('npm', ['run', '--silent', 'synth'], { encoding: 'utf8' });
    if (!/^\d{2} files, 0 changed$/m.test(output))
      throw new Error(`dist/manifests was not as it should be:\n${output}`);
  });
}

/** With the shipped library, from the start of Node to its end. */
function authoringSeconds(): number {
  const program = bundled('authoring');
  return medianSeconds(() => {
    const { objects, bytes } = JSON.parse(
      execFileSync(process.execPath, [program], { encoding: 'utf8' }),
    ) as {
      objects: number;
      bytes: number;
    };
    if (objects !== 3 * AUTHORED || bytes < 1_000 * AUTHORED) throw new Error('not all objects were made');
  });
}

const RUNS = 5;

function medianSeconds(run: () => void): number {
  const runs = Array.from({ length: RUNS }, () => {
    const start = process.hrtime.bigint();
    run();
    return Number(process.hrtime.bigint() - start) / 1e9;
  });
  return median(runs);
}
