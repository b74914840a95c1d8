import type { Install } from '../installation.ts';
import { inlineText } from './expressions.ts';
import type { Placed } from './expressions.ts';
import { merge } from './merge.ts';
import { nodeOf } from './nodes.ts';
import { objectsOfRelease } from './own-values.ts';
import { printTemplate } from './print.ts';
import { inputsOf, placedFields } from './runs.ts';
import type { ChartSource } from './runs.ts';

/**
 * The templates of a chart by file. Runs of synth with sentinels in place of values show where each value is, and the
 * difference of two runs shows what depends on a switch, or on whether an optional value is set.
 */
export function templatesOf(source: ChartSource): ReadonlyMap<string, string> {
  const fields = placedFields(source);
  const runs = inputsOf(source).map(({ on, install, own }) => ({
    on,
    objects: objectsOfRelease(install, own, source.definitions),
  }));
  const files = [...new Set(runs.flatMap(({ objects }) => [...objects.keys()]))];
  const templates = files.map(file => {
    const objects = merge(runs.map(run => ({ on: run.on, node: nodeOf(run.objects.get(file) ?? []) })));
    return [file, printTemplate(file.replace('.yaml', ''), objects, fields)] as const;
  });
  expectAllPlaced(fields, templates.map(([, text]) => text).join(''));
  return new Map(templates);
}

/** A text of synth without switches, as a template. */
export function inlineTemplate(source: ChartSource, textOf: (install: Install) => string): string {
  const [input] = inputsOf(source);
  if (!input) throw new Error('there is no run of synth');
  return inlineText(textOf(input.install), placedFields(source));
}

/** A value that no template reads has no effect: it must not be one. */
function expectAllPlaced(fields: readonly Placed[], templates: string): void {
  for (const { path, from } of fields) {
    const outer = ['.Values', ...path.slice(0, -1)].join('.');
    const reads = [from ?? ['.Values', ...path].join('.'), `hasKey ${outer} "${path.at(-1)}"`];
    const isRead = reads.some(read => [' ', ')'].some(end => templates.includes(read + end)));
    if (!isRead) throw new Error(`no template reads ${path.join('.')}`);
  }
}
