import { describe, expect, it } from 'vitest';
import { COMPONENTS } from '../../src/api/names.ts';
import { allMetrics, foreignMetrics } from '../../src/telemetry/metrics.ts';
import * as declared from '../../src/telemetry/metrics.ts';
import { alerts } from '../../synth/monitoring/alerts.ts';
import { dashboards } from '../../synth/monitoring/dashboards.ts';
import { at, listAt } from '../support/synth/parts.ts';
import { lacksPromtool, runPromtool } from '../support/synth/promtool.ts';
import { objectOf, objectsIn, synthesized } from '../support/synth/synthesized.ts';

type Known = { readonly name: string; readonly labels: object; readonly type?: string };

const metrics: readonly Known[] = [
  ...Object.values(declared).flatMap((group): readonly Known[] => Object.values<Known>(group)),
  ...Object.values(foreignMetrics),
];

/** Labels that Prometheus adds to everything that our ServiceMonitors select. */
const OF_TARGETS = ['job', 'instance', 'namespace', 'pod', 'container'];

const panels = [...dashboards().values()].flatMap(dashboard =>
  listAt(dashboard, 'panels').flatMap(panel => {
    const inner = listAt(panel, 'panels');
    return inner.length > 0 ? inner : [panel];
  }),
);
const graphs = panels.filter(panel => at(panel, 'type') !== 'row');
const lines = graphs.flatMap(graph =>
  listAt(graph, 'targets').map(target => ({
    of: String(at(graph, 'title')),
    expression: String(at(target, 'expr')),
    legend: String(at(target, 'legendFormat')),
  })),
);
const expressions = [
  ...alerts('mesh-system').map(({ alert, expr }) => ({ of: alert, expression: expr })),
  ...lines,
];

/** Each series of an expression: the name, and the labels that it must have. */
function seriesIn(
  expression: string,
): readonly { readonly name: string; readonly labels: readonly string[] }[] {
  return [...expression.matchAll(/([a-z_:][a-z0-9_:]*)\{([^}]*)\}/g)].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...matchers.matchAll(/([a-z_]+)="/g)].map(([, label = '']) => label),
  }));
}

function metricOf(name: string): Known | undefined {
  return metrics.find(
    metric => metric.name === name || (metric.type === 'histogram' && name === `${metric.name}_bucket`),
  );
}

describe('an expression', () => {
  it('is in many places', () => {
    expect(expressions.length).toBeGreaterThan(30);
  });

  it.each(expressions)(
    'of $of uses metrics that are declared, and labels that they have: $expression',
    ({ expression }) => {
      const series = seriesIn(expression);
      expect(series).not.toEqual([]);
      for (const { name, labels } of series) {
        const metric = metricOf(name);
        expect(metric, name).toBeDefined();
        const known = [...Object.keys(metric?.labels ?? {}), ...OF_TARGETS];
        expect(labels.filter(label => !known.includes(label))).toEqual([]);
        expect(labels.some(label => label === 'job' || label === 'container')).toBe(true);
      }
    },
  );

  it.skipIf(lacksPromtool)('is one that Prometheus reads', async () => {
    const rules = expressions.map(({ expression }, index) => ({
      record: `a:${index}`,
      expr: expression.replaceAll('$__rate_interval', '5m'),
    }));
    const groups = [{ name: 'all', rules }];
    const output = await runPromtool({ 'rules.yaml': { groups } }, ['check', 'rules', 'rules.yaml']);
    expect(output).toContain(`SUCCESS: ${expressions.length} rules found`);
  });
});

describe('the labels of a metric', () => {
  it('are not renamed by Prometheus where its own have the same names', () => {
    const own = Object.values(allMetrics).flatMap(({ name, labels }) =>
      Object.keys(labels)
        .filter(label => [...OF_TARGETS, 'endpoint', 'service'].includes(label))
        .map(label => `${name} ${label}`),
    );
    // Only the operator reports them.
    expect(own).toEqual([
      'mesh_gateway_endpoint_healthy namespace',
      'mesh_gateway_endpoint_healthy endpoint',
      'mesh_gateway_discovered_endpoints namespace',
    ]);
    const monitor = objectOf(objectsIn(synthesized({})), 'ServiceMonitor', COMPONENTS.operator);
    expect(listAt(monitor, 'spec', 'endpoints').map(one => at(one, 'honorLabels'))).toEqual([true]);
  });
});

describe('a dashboard', () => {
  it('is one of two', () => {
    expect([...dashboards().keys()]).toEqual(['operator', 'traffic']);
  });

  it('has graphs with lines, each with a description', () => {
    expect(graphs.length).toBeGreaterThan(15);
    for (const graph of graphs) {
      expect(at(graph, 'type')).toBe('timeseries');
      expect(String(at(graph, 'description'))).toMatch(/\.$/);
      expect(listAt(graph, 'targets')).not.toEqual([]);
    }
  });

  it('has a legend for each line of a graph', () => {
    for (const { expression, legend } of lines) {
      const by = /\bby \(([^)]+)\)/.exec(expression)?.[1]?.split(', ') ?? [];
      for (const label of by.filter(one => one !== 'le')) expect(legend).toContain(`{{${label}}}`);
    }
  });

  it('uses the selected data source', () => {
    for (const dashboard of dashboards().values())
      expect(listAt(dashboard, 'templating', 'list').map(one => at(one, 'name'))).toEqual(['datasource']);
    for (const graph of graphs) expect(at(graph, 'datasource', 'uid')).toBe('$datasource');
  });

  it('has graphs that do not lie over each other', () => {
    for (const dashboard of dashboards().values()) {
      const places = listAt(dashboard, 'panels').map(panel => JSON.stringify(at(panel, 'gridPos')));
      expect(new Set(places).size).toBe(places.length);
    }
  });
});
