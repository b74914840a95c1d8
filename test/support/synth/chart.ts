import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { parseManifests } from '../../../lab/kube/manifests.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { fieldsOf, readSchema } from '../../../synth/chart/fields.ts';
import { withOwnValues } from '../../../synth/chart/own-values.ts';
import { validateConfiguration } from '../../../synth/config.ts';
import { install } from '../../../synth/install.ts';
import { jsonObjectIn } from '../../../src/api/json.ts';
import { definitions, everyKnob, objectsIn } from './synthesized.ts';
import type { Written } from './synthesized.ts';

/** The chart in the checkout. */
export const CHART = 'dist/chart';

/** The namespace of releases, which is no value of the chart. */
export const RELEASE_NAMESPACE = 'mesh-two';

/** All values of the chart. */
export const chartFields = fieldsOf(withOwnValues(readSchema(readFileSync('synth/config.json', 'utf8'))));

/** The values that decide by themselves whether something exists: those that are on or off, or set or not set. */
export const chartSwitches = chartFields.filter(({ is, isOptional }) => is === 'switch' || isOptional);

/** A value other than the default for each value of the chart. */
export const otherValues: Written = {
  ...everyKnob,
  createNamespace: true,
  crds: { enabled: false, keep: false },
  monitoring: { ...(everyKnob['monitoring'] as Written), enabled: true },
};

const pathOf = locateBinaries(process.env);

/** Runs helm with values; fails with its error output if it fails. */
export async function helm(args: readonly string[], values: Written = {}): Promise<string> {
  const command = promisify(execFile)(pathOf('helm'), [...args], { maxBuffer: 2 ** 26 });
  command.child.stdin?.end(JSON.stringify(values));
  return (await command).stdout;
}

/** What helm renders from values. */
export async function rendered(values: Written): Promise<readonly KubeObject[]> {
  const args = ['template', 'mesh-gateway', CHART, '--namespace', RELEASE_NAMESPACE, '--values', '-'];
  return parseManifests(await helm(args, values), 'the chart');
}

/** What synth writes for values of the chart. */
export function synthesizedFor(values: Written): readonly KubeObject[] {
  const { createNamespace = false, crds = {}, monitoring = {}, ...configuration } = values;
  const { enabled: hasCrds = true, keep = true } = crds as Written;
  const { enabled: hasMonitoring = false, ...ofConfiguration } = monitoring as Written;
  const read = validateConfiguration({
    ...configuration,
    monitoring: ofConfiguration,
    namespace: RELEASE_NAMESPACE,
  });
  if (read.faults) throw new Error(read.faults.join('\n'));
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
  const charts = [
    ...(hasCrds === true ? ['crds'] : []),
    ...['rbac', 'admission-policies', 'operator', 'extension-server', 'network-policies'],
    ...(createNamespace === true ? ['namespace'] : []),
    ...(hasMonitoring === true ? ['monitoring'] : []),
  ];
  const files = install({ installation: read.installation, version, definitions }, charts);
  return objectsIn(files).map(object =>
    keep === true && object.kind === 'CustomResourceDefinition' ? withAnnotation(object, KEEP) : object,
  );
}

const KEEP = { 'helm.sh/resource-policy': 'keep' };

function withAnnotation(object: KubeObject, annotations: Readonly<Record<string, string>>): KubeObject {
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Objects by kind and name; a variable that is JSON is compared as what it means, in which the order of fields does not matter. */
export function comparable(objects: readonly KubeObject[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    objects.map(object => {
      const { kind, metadata } = object;
      const { value } = JSON.parse(JSON.stringify({ value: object }), (key, inner: unknown) =>
        key === 'value' && typeof inner === 'string' ? (jsonObjectIn(inner) ?? inner) : inner,
      ) as { readonly value: unknown };
      return [`${kind} ${metadata.namespace ?? ''}/${metadata.name ?? ''}`, value] as const;
    }),
  );
}
