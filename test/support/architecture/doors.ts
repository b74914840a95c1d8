import { isBuiltin } from 'node:module';
import { importsOf } from './imports.ts';
import { isPermitted, listed, matches } from './permission.ts';
import type { Permission } from './permission.ts';
import { COMPOSITION_ROOTS, isProduct } from './places.ts';
import { at } from './source.ts';
import type { Source, Violations } from './source.ts';

/** The only files of the product that may import a package, types included; `{ types }` may name its types only. */
const DOORS: Readonly<Record<string, readonly Permission[]>> = {
  '@bufbuild/protobuf': ['src/extension/', 'codegen/protobuf/'],
  '@bufbuild/protoc-gen-es': ['codegen/protobuf/'],
  '@grafana/grafana-foundation-sdk': ['synth/monitoring/'],
  '@grpc/*': ['src/extension/grpc/', 'src/health/probe/grpc.ts'],
  '@kubernetes/client-node': ['src/kubernetes/auth/'],
  '@marcbachmann/cel-js': ['codegen/cel/', 'src/tools/crds/cel.ts'],
  ajv: ['codegen/validator/'],
  'cdk8s*': ['synth/', { types: 'src/library/' }],
  constructs: ['synth/'],
  diff: ['synth/folder.ts'],
  'grpc-health-check': ['src/extension/grpc/', 'src/health/probe/grpc.ts'],
  jose: ['lab/control-api/operations/tokens.ts', { types: 'lab/control-api/' }],
  'json-schema-to-typescript': ['codegen/types.ts'],
  ky: ['src/control/'],
  'node:fs': [
    ...COMPOSITION_ROOTS,
    'codegen/main.ts',
    'synth/command.ts',
    'synth/folder.ts',
    'synth/main.ts',
    'src/kubernetes/auth/',
    'src/files/',
    'src/relay/receive-buffers.ts',
    'src/tools/',
    'lab/',
  ],
  'node:http2': ['src/extension/grpc/', 'lab/'],
  pino: ['src/telemetry/log.ts'],
  'pprof-format': ['src/telemetry/profile.ts'],
  'prom-client': ['src/telemetry/registry.ts'],
  protobufjs: ['codegen/protobuf/'],
  socks: ['src/relay/'],
  undici: ['src/control/'],
  yaml: [
    'codegen/crd.ts',
    'lab/cluster/',
    'lab/kube/',
    'lab/release/crd-schemas.ts',
    'src/api/yaml-documents.ts',
    'src/api/envoy-gateway.ts',
    'src/library/to-yaml.ts',
    'synth/chart/',
  ],
};

/** A package is used behind its door only, and every package has one; Node's own modules are open if not listed. */
export function doors(sources: readonly Source[]): Violations {
  return sources.filter(({ path }) => isProduct(path)).flatMap(strangers);
}

function strangers(source: Source): Violations {
  return importsOf(source).flatMap(found => {
    if (!('package' in found)) return [];
    const door = Object.entries(DOORS).find(([pattern]) => matches(pattern, found.package));
    if (!door && isBuiltin(found.module)) return [];
    const message = door
      ? refusal(source.path, found.package, door[1], found.isType)
      : unknown(found.package);
    return message === undefined ? [] : [at(source, found.node, message)];
  });
}

function unknown(name: string): string {
  return `imports ${name}, which has no door: name the files that may import it in test/support/architecture/doors.ts`;
}

function refusal(
  path: string,
  name: string,
  door: readonly Permission[],
  isType: boolean,
): string | undefined {
  if (isPermitted(door, path, isType)) return undefined;
  const behind = isPermitted(door, path, true) ? 'only as a type' : `only in ${listed(door)}`;
  return `imports ${name}, which is used ${behind}: call what stands behind that door, or take it as a port`;
}
