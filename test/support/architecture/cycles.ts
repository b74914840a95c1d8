import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import type { Source, Violations } from './source.ts';

/** Which files each file imports. */
type Graph = ReadonlyMap<string, readonly string[]>;

/** Files do not import each other in a circle; inside one folder, types may. */
export function cycles(sources: readonly Source[]): Violations {
  const atRunTime = cyclesIn(graphOf(sources, false));
  const acrossFolders = cyclesIn(graphOf(sources, true)).filter(
    cycle => new Set(cycle.map(path => posix.dirname(path))).size > 1,
  );
  const known = new Set(atRunTime.map(shown));
  return [
    ...atRunTime.map(
      cycle => `${shown(cycle)} is a cycle: move what both need into a file of its own, or hand it in`,
    ),
    ...acrossFolders
      .filter(cycle => !known.has(shown(cycle)))
      .map(cycle => `${shown(cycle)} is a cycle of folders: move the types to the folder that knows less`),
  ];
}

function graphOf(sources: readonly Source[], withTypes: boolean): Graph {
  const edges = sources.map(source => {
    const files = importsOf(source).flatMap(found =>
      'file' in found && (withTypes || !found.isType) ? [found.file] : [],
    );
    return [source.path, files] as const;
  });
  return new Map(edges);
}

/** For every import that lies on a cycle the shortest one; each cycle once, from its first file in the alphabet. */
function cyclesIn(all: Graph): readonly (readonly string[])[] {
  const graph = withoutEnds(all);
  const found = new Map<string, readonly string[]>();
  for (const [from, targets] of graph) {
    for (const to of targets) {
      const back = shortestPath(graph, to, from);
      if (!back) continue;
      const cycle = fromItsFirst(back);
      found.set(cycle.join(), cycle);
    }
  }
  return [...found.values()];
}

/** Without files that import nothing, and then those that only import such files: they are on no cycle. */
function withoutEnds(graph: Graph): Graph {
  const kept = [...graph].flatMap(([from, targets]) => {
    const others = targets.filter(to => graph.has(to));
    return others.length > 0 ? [[from, others] as const] : [];
  });
  return kept.length === graph.size ? graph : withoutEnds(new Map(kept));
}

/** The files from one to another, both included; just one where they are the same. */
function shortestPath(graph: Graph, from: string, to: string): readonly string[] | undefined {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]]);
  for (const [path] of cameFrom) {
    if (path === to) return trail(cameFrom, to);
    for (const next of graph.get(path) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, path);
  }
  return undefined;
}

function trail(cameFrom: ReadonlyMap<string, string | undefined>, end: string): readonly string[] {
  const before = cameFrom.get(end);
  return before === undefined ? [end] : [...trail(cameFrom, before), end];
}

function fromItsFirst(cycle: readonly string[]): readonly string[] {
  const first = cycle.indexOf([...cycle].sort()[0] ?? '');
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}

function shown(cycle: readonly string[]): string {
  return [...cycle, ...cycle.slice(0, 1)].join(' -> ');
}
