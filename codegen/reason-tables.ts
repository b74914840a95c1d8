import { PLACES } from '../src/api/reasons.ts';
import type { Declaration } from '../src/api/reasons/declare.ts';
import { table } from './field-tables.ts';

const TABLES = /^<!-- reasons -->\n[^]*?^<!-- end of reasons -->$/m;

/** A page with the tables of all reasons, each place below its own title, between two comments. */
export function withReasonTables(page: string): string {
  const sections = Object.entries<Readonly<Record<string, Declaration>>>(PLACES)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([place, declared]) =>
      [`## ${titleOf(place)}`, '', ...table(HEADER, rowsOf(declared)), ''].join('\n'),
    );
  return page.replace(TABLES, ['<!-- reasons -->', '', ...sections, '<!-- end of reasons -->'].join('\n'));
}

function titleOf(place: string): string {
  return `${place.charAt(0).toUpperCase()}${place.slice(1)}`;
}

const HEADER = ['reason', 'severity', 'what it means', 'what to do'];

function rowsOf(declared: Readonly<Record<string, Declaration>>): readonly (readonly string[])[] {
  return Object.entries(declared).map(([reason, { severity, means, fix = '' }]) => [
    `\`${reason}\``,
    severity,
    means,
    fix,
  ]);
}
