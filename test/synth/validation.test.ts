import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../lab/kube/object.ts';
import { nameRef, refOf } from '../../lab/kube/object.ts';
import { modelOf } from '../support/synth/models.ts';
import { at, put } from '../support/synth/parts.ts';
import { everyKnob, objectOf, objectsIn, synthesized } from '../support/synth/synthesized.ts';

function faultOf(object: KubeObject): unknown {
  const model = modelOf(object);
  try {
    model.validate();
    return undefined;
  } catch (error) {
    return error;
  }
}

const cases = Object.entries({ 'by default': {}, 'with every knob turned': everyKnob }).flatMap(
  ([configured, written]) =>
    objectsIn(synthesized(written)).map(object => ({ configured, name: nameRef(refOf(object)), object })),
);

const usual = objectsIn(synthesized({}));

describe('an object', () => {
  it.each(cases)('$name $configured is what its kind allows', ({ object }) => {
    expect(faultOf(object)).toBeUndefined();
  });

  it.each([
    ['Deployment', ['spec', 'template', 'spec', 'containers', 0, 'ports', 0, 'containerPort'], '8080'],
    ['HorizontalPodAutoscaler', ['spec', 'maxReplicas'], 'ten'],
    ['NetworkPolicy', ['spec', 'podSelector'], 'all'],
    ['ClusterRole', ['rules', 0, 'verbs'], 'get'],
    ['ValidatingAdmissionPolicy', ['spec', 'validations'], { expression: 'true' }],
    ['PrometheusRule', ['spec', 'groups', 0, 'rules', 0, 'expr'], undefined],
    ['ServiceMonitor', ['spec', 'endpoints'], { port: 'metrics' }],
  ])('of kind %s are refused with a wrong value', (kind, way, wrong) => {
    const object = objectOf(structuredClone(usual), kind);
    expect(at(object, ...way)).not.toEqual(wrong);
    put(object, way, wrong);
    expect(faultOf(object)).toBeDefined();
  });
});

describe('the committed manifests', () => {
  it('are of the version in package.json', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
    expect(readFileSync('dist/manifests/operator.yaml', 'utf8')).toContain(
      `image: mesh-gateway:${version}\n`,
    );
  });
});
