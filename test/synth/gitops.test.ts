import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../lab/kube/object.ts';
import { gitopsObjects, SCHEMAS } from '../support/gitops/examples.ts';
import { at, put } from '../support/synth/parts.ts';

const schemas = JSON.parse(readFileSync(SCHEMAS, 'utf8')) as Readonly<Record<string, object>>;
const ajv = new Ajv({ strict: false });
const objects = gitopsObjects().map(object => ({
  name: `${object.kind} ${object.metadata.name ?? ''}`,
  object,
}));

function errorsOf(object: KubeObject): readonly unknown[] {
  const schema = schemas[`${object.apiVersion} ${object.kind}`];
  if (!schema) throw new Error(`${SCHEMAS} lacks ${object.apiVersion} ${object.kind}`);
  const validate = ajv.compile(schema);
  return validate(object) ? [] : (validate.errors ?? []);
}

describe('the examples for Argo CD and Flux', () => {
  it.each(objects)('$name is valid by the CRD of its kind', ({ object }) => {
    expect(errorsOf(object)).toEqual([]);
  });

  it.each(objects)('$name is not valid with a field that its kind does not have', ({ object }) => {
    const wrong = structuredClone(object);
    put(wrong, ['spec', 'intervall'], '1m');
    expect(errorsOf(wrong)).not.toEqual([]);
  });

  it('configure Envoy Gateway after mesh-gateway, and tailnets after both', () => {
    const applications = objects.filter(({ object }) => object.kind === 'Application');
    const waves = applications.map(({ name, object }) => [
      name,
      object.metadata.annotations?.['argocd.argoproj.io/sync-wave'],
    ]);
    expect(waves).toEqual([
      ['Application mesh-gateway', '0'],
      ['Application envoy-gateway', '1'],
      ['Application tailnets', '2'],
    ]);
    const release = objects.find(({ name }) => name === 'HelmRelease envoy-gateway');
    expect(at(release?.object, 'spec', 'dependsOn')).toEqual([{ name: 'mesh-gateway' }]);
  });
});
