/* eslint-disable @typescript-eslint/no-deprecated -- its replacement needs Grafana 12 or newer */
import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  RowBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

/** A graph, with its expressions by the legends of their lines. */
export type Graph = {
  readonly title: string;
  readonly description: string;
  readonly unit: 's' | 'short' | 'ops' | 'bytes' | 'percentunit';
  readonly lines: Readonly<Record<string, string>>;
};

export type Row = { readonly title: string; readonly graphs: readonly Graph[] };

const SOURCE = { type: 'prometheus', uid: '$datasource' };

/** Builds a dashboard from rows of graphs, two graphs side by side. */
export function dashboardOf(uid: string, title: string, rows: readonly Row[]): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .tags(['mesh-gateway'])
    .refresh('1m')
    .time({ from: 'now-6h', to: 'now' })
    .withVariable(new DatasourceVariableBuilder('datasource').type('prometheus').label('Data source'));
  for (const row of rows) {
    builder.withRow(new RowBuilder(row.title));
    for (const graph of row.graphs) builder.withPanel(panelOf(graph));
  }
  return builder.build();
}

function panelOf({ title, description, unit, lines }: Graph): PanelBuilder {
  const panel = new PanelBuilder()
    .title(title)
    .description(description)
    .unit(unit)
    .datasource(SOURCE)
    .span(12)
    .height(8);
  for (const [legend, expression] of Object.entries(lines))
    panel.withTarget(new DataqueryBuilder().expr(expression).legendFormat(legend));
  return panel;
}
