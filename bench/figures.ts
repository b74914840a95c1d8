import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { elapsed } from '../lab/parts/progress.ts';
import type { OnStep } from '../lab/process/steps.ts';

/** A measured number and its aim; a figure without an aim is there for comparison. */
export type Figure = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly aim?: number;
  /** Whether values below or above the aim are good; `low` by default. */
  readonly good?: 'low' | 'high';
};

/** How long a bench takes: what its own waits add up to, or an estimate for two cores. */
export type Duration = { readonly atLeastMs: number } | { readonly aboutMs: number };

/** A named group of measurements, or one part of it. */
export type Bench = {
  /** Fails for a part that it does not have. */
  readonly duration: (part?: string) => Duration;
  readonly run: (onStep: OnStep, part?: string) => Promise<readonly Figure[]>;
};

/** A run of a bench to its end. */
type Run = { readonly name: string; readonly part: string | undefined; readonly tookMs: number };

/** How long a bench takes, also by its last run on this machine. */
export function durationText(name: string, part: string | undefined, duration: Duration): string {
  const expected =
    'aboutMs' in duration
      ? `about ${elapsed(duration.aboutMs)}`
      : `at least ${elapsed(duration.atLeastMs)}, which it waits`;
  const last = lastRun(name);
  const took = last?.part === part && last?.tookMs !== undefined ? `; ${elapsed(last.tookMs)} last time` : '';
  return `${part === undefined ? name : `${name} ${part}`} takes ${expected}${took}`;
}

function lastRun(name: string): Partial<Run> | undefined {
  try {
    return JSON.parse(readFileSync(fileOf(name), 'utf8')) as Partial<Run>;
  } catch {
    return undefined;
  }
}

const FOLDER = '.cache/bench';

function fileOf(name: string): string {
  return `${FOLDER}/${name}.json`;
}

/** Prints the figures as a table and writes them to .cache/bench/NAME.json. */
export function report({ name, part, tookMs }: Run, figures: readonly Figure[]): void {
  const rows = figures.map(figure => [
    figure.name,
    `${rounded(figure.value)} ${figure.unit}`,
    aimOf(figure),
    verdictOf(figure),
  ]);
  const table = [['figure', 'value', 'aim', ''], ...rows];
  const widths = [0, 1, 2, 3].map(column => Math.max(...table.map(row => (row[column] ?? '').length)));
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  mkdirSync(FOLDER, { recursive: true });
  const record = { part, tookMs: Math.round(tookMs), figures: figures.map(recordOf) };
  writeFileSync(fileOf(name), `${JSON.stringify(record, null, 2)}\n`);
}

function recordOf(figure: Figure) {
  const { name, value, unit, aim } = figure;
  return { name, value, unit, aim: aim ?? null, met: isMet(figure) ?? null };
}

function aimOf({ aim, unit, good }: Figure): string {
  if (aim === undefined) return '';
  return `${good === 'high' ? 'at least' : 'at most'} ${Number.isInteger(aim) ? aim : rounded(aim)} ${unit}`;
}

function isMet({ value, aim, good }: Figure): boolean | undefined {
  if (aim === undefined) return undefined;
  return good === 'high' ? value >= aim : value <= aim;
}

function verdictOf(figure: Figure): string {
  const met = isMet(figure);
  if (met === undefined) return '';
  return met ? 'met' : 'missed';
}

function rounded(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** The median of some measurements. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

/** A quantile of some measurements, such as 0.99, as one of them. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
}

/** Microseconds of one call: the median over rounds, after as many calls to warm up. */
export function microseconds(call: () => unknown, calls = 2_000, rounds = 7): number {
  const measured = Array.from({ length: rounds + 1 }, () => {
    const start = process.hrtime.bigint();
    for (let done = 0; done < calls; done++) call();
    return Number(process.hrtime.bigint() - start) / 1_000 / calls;
  });
  return median(measured.slice(1));
}
