import { describe, expect, it } from 'vitest';
import {
  everyKnob,
  installationOf,
  knobPaths,
  objectsIn,
  synthesized,
} from '../support/synth/synthesized.ts';
import type { Written } from '../support/synth/synthesized.ts';

const knobs = knobPaths.map(steps => ({ knob: steps.join('.'), steps }));

function valueAt(value: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>((at, step) => (at as Written | undefined)?.[step], value);
}

/** A configuration with one setting. */
function onlyWith(steps: readonly string[], value: unknown): Written {
  return steps.reduceRight<unknown>((inner, step) => ({ [step]: inner }), value) as Written;
}

const textOf = (written: Written) => JSON.stringify([...synthesized(written)]);
const defaults = installationOf({});
const usual = textOf({});

describe('the configuration that turns every knob', () => {
  it('finds many', () => {
    expect(knobs.length).toBeGreaterThan(35);
  });

  it.each(knobs)('turns $knob away from its default', ({ steps }) => {
    const turned = valueAt(everyKnob, steps);
    expect(turned).toBeDefined();
    expect(turned).not.toEqual(valueAt(defaults, steps));
  });
});

describe('a knob', () => {
  it.each(knobs)('$knob changes something when it is turned alone', ({ steps }) => {
    expect(textOf(onlyWith(steps, valueAt(everyKnob, steps)))).not.toBe(usual);
  });

  it.each(knobs)('$knob changes nothing when it is set to its default', ({ steps }) => {
    const value = valueAt(defaults, steps);
    expect(textOf(value === undefined ? {} : onlyWith(steps, value))).toBe(usual);
  });
});

it('labels that are meant for Prometheus and Grafana alone count more than those for everything', () => {
  const labels = { release: 'mesh', grafana_dashboard: 'no' };
  const monitoring = { labels: { release: 'prometheus' }, dashboardLabels: { grafana_dashboard: '1' } };
  const objects = objectsIn(synthesized({ labels, monitoring }, ['monitoring']));
  const found = objects.map(({ kind, metadata }) => [
    kind,
    metadata.labels?.['release'],
    metadata.labels?.['grafana_dashboard'],
  ]);
  expect(found).toContainEqual(['ServiceMonitor', 'prometheus', 'no']);
  expect(found).toContainEqual(['PrometheusRule', 'prometheus', 'no']);
  expect(found).toContainEqual(['ConfigMap', 'mesh', '1']);
});
