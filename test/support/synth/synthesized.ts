import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { parseManifests } from '../../../lab/kube/manifests.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { fieldsOf, readSchema } from '../../../synth/chart/fields.ts';
import { validateConfiguration } from '../../../synth/config.ts';
import type { Installation } from '../../../synth/generated/types.ts';
import { install } from '../../../synth/install.ts';
import type { Files } from '../../../synth/install.ts';

/** A configuration as users write it. */
export type Written = Readonly<Record<string, unknown>>;

/** The configuration with every setting. */
export const everyKnob = parse(readFileSync('test/support/synth/every-knob.yaml', 'utf8')) as Written;

/** The paths of all settings. */
export const knobPaths = fieldsOf(readSchema(readFileSync('synth/config.json', 'utf8'))).map(
  ({ path }) => path,
);

/** A configuration with its defaults; throws if it is invalid. */
export function installationOf(written: Written): Installation {
  const read = validateConfiguration(written);
  if (read.faults) throw new Error(read.faults.join('\n'));
  return read.installation;
}

/** The texts of the CRDs. */
export const definitions = readdirSync('dist/crds')
  .sort()
  .map(name => readFileSync(`dist/crds/${name}`, 'utf8'));

/** All files of a configuration, as version 1.2.3. */
export function synthesized(written: Written, only?: readonly string[]): Files {
  return install({ installation: installationOf(written), version: '1.2.3', definitions }, only);
}

/** The objects in files, without those of kustomize and Helm. */
export function objectsIn(files: Files): readonly KubeObject[] {
  return [...files]
    .filter(([path]) => !/(kustomization|values)\.yaml$/.test(path))
    .flatMap(([path, text]) => parseManifests(text, path));
}

/** One object of a kind, or of a kind and a name. */
export function objectOf(objects: readonly KubeObject[], kind: string, name?: string): KubeObject {
  const found = objects.find(
    object => object.kind === kind && (name === undefined || object.metadata.name === name),
  );
  if (!found) throw new Error(`there is no ${kind} ${name ?? ''}`);
  return found;
}
