import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ref, ResourceKind } from '../../src/api/key.ts';
import { meshBackendsOf, refTo, tailnetsOf } from '../../src/api/objects/references.ts';
import type { Resource, ResourceOf } from '../../src/api/objects/resource.ts';
import { Derived } from '../../src/store/derived.ts';
import type { AnyIndex, Index, ReadObjects } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { Tracking } from '../../src/store/tracking.ts';
import type { DerivedValues, OpenReads, ReadSet, TrackedRead } from '../../src/store/tracking.ts';
import { named } from '../support/declared.ts';
import { meshTailnet } from '../support/objects.ts';
import { KINDS, LABELS, NAMES, objects, TAILNETS } from '../support/store/random-objects.ts';
import type { Kind } from '../support/store/random-objects.ts';
import { readMeshEndpoints, resourceOf } from '../support/store/resources.ts';
import { runs } from '../support/runs.ts';

/*
 * Random changes of a store, and dependents with random programs of reads. The oracle runs each program on the store itself,
 * without anything cached, before and after each change:
 *
 *   a dependent that would read something else     is notified
 *   a dependent that is notified                   has a read, or a read of a derived value, whose result has changed
 */

function indexBy<K extends ResourceKind>(name: string, kind: K, valuesOf: Index<K>['valuesOf']): Index<K> {
  return { name, kind, valuesOf };
}

const byTailnet = indexBy('endpoints by tailnet', 'MeshEndpoints', tailnetsOf);
const byLabel = indexBy('endpoints by label', 'MeshEndpoints', labelsOf);
const tailnetsByTailnet = indexBy('tailnets by tailnet', 'MeshTailnet', tailnetsOf);
const routesByBackend = indexBy('routes by backend', 'HTTPRoute', meshBackendsOf);
const indexes: readonly AnyIndex[] = [byTailnet, byLabel, tailnetsByTailnet, routesByBackend];

function labelsOf({ metadata }: Resource): readonly string[] {
  return Object.values(metadata.labels ?? {});
}

function endpointsRef(name: string): Ref<'MeshEndpoints'> {
  const [namespace = '', last = ''] = name.split('/');
  return { kind: 'MeshEndpoints', namespace, name: last };
}

type Change =
  | { readonly do: 'put'; readonly object: Resource }
  | { readonly do: 'remove'; readonly ref: Ref }
  | { readonly do: 'replace-all'; readonly kind: Kind; readonly objects: readonly Resource[] };

const changes: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: objects.map(object => ({ do: 'put', object }) as const) },
  { weight: 2, arbitrary: objects.map(object => ({ do: 'remove', ref: refTo(object) }) as const) },
  fc.tuple(fc.constantFrom(...KINDS), fc.array(objects, { maxLength: 8 })).map(([kind, all]) => {
    return { do: 'replace-all', kind, objects: all.filter(object => object.kind === kind) } as const;
  }),
);

type Derive = (name: string, read: TrackedRead) => string | undefined;

/** How the values of a world are derived; those that are derived from others take them from `all`. */
const DERIVES = {
  /** Of a MeshEndpoints; fails where it is labelled so. */
  tailnet: () => (name, read) => {
    const object = read.get(endpointsRef(name));
    if (object && labelsOf(object).includes('broken')) throw new Error(`${name} is broken`);
    return object?.spec.tailnet;
  },
  /** Of a tailnet, whose endpoints are counted if it is declared. */
  size: () => (tailnet, read) => {
    if (read.exceptStatus.find(tailnetsByTailnet, tailnet).length === 0) return undefined;
    return String(read.exceptStatus.find(byTailnet, tailnet).length);
  },
  neighbours: all => (name, read) => {
    const tailnet = read.value(all().tailnet, name);
    return tailnet === undefined ? undefined : (read.value(all().size, tailnet) ?? 'undeclared');
  },
  /** Of all MeshEndpoints with a label; those that fail are in it as such. */
  summary: all => (label, read) => {
    const found = read
      .find(byLabel, label)
      .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
    return textOf(found.sort().map(name => outcomeOf(() => read.value(all().neighbours, name))));
  },
  sizes: all => (_name, read) =>
    textOf([...read.values(byTailnet)].sort().map(tailnet => read.value(all().size, tailnet))),
} satisfies Readonly<Record<string, (all: () => Values) => Derive>>;

type ValueName = 'tailnet' | 'size' | 'neighbours' | 'summary' | 'sizes';
type Values = Readonly<Record<ValueName, Derived<string | undefined>>>;

const VALUES: readonly (readonly [ValueName, readonly string[]])[] = [
  ...[['tailnet', NAMES] as const, ['size', TAILNETS] as const, ['neighbours', NAMES] as const],
  ...[['summary', LABELS] as const, ['sizes', ['']] as const],
];

/** A result as text, with the error of a read that fails. */
function outcomeOf(read: () => unknown): string {
  try {
    return textOf(read());
  } catch (error) {
    return `fails: ${(error as Error).message}`;
  }
}

function textOf(value: unknown): string {
  return value === undefined ? 'undefined' : JSON.stringify(value);
}

type Op = {
  readonly text: string;
  readonly isDerived: boolean;
  readonly hasStatus: boolean;
  readonly run: (read: TrackedRead, all: Values) => unknown;
};

function plainRead(text: string, run: (read: ReadObjects) => unknown): readonly Op[] {
  const exceptStatus = ({ exceptStatus: read }: TrackedRead) => run(read);
  return [
    { text, isDerived: false, hasStatus: true, run },
    { text: `${text} except status`, isDerived: false, hasStatus: false, run: exceptStatus },
  ];
}

const plainReads: readonly Op[] = [
  ...NAMES.flatMap(name => plainRead(`get ${name}`, read => read.get(endpointsRef(name)))),
  ...NAMES.flatMap(name => plainRead(`follow ${name}`, read => follow(name, read))),
  ...KINDS.flatMap(kind => plainRead(`list ${kind}`, read => read.list(kind))),
  ...(indexes as readonly Index[]).flatMap(each =>
    plainRead(`values of ${each.name}`, read => read.values(each)),
  ),
  ...TAILNETS.flatMap(text => plainRead(`find in ${text}`, read => read.find(byTailnet, text))),
  ...TAILNETS.flatMap(text => plainRead(`members of ${text}`, read => read.members(byTailnet, text))),
  ...TAILNETS.flatMap(text =>
    plainRead(`find tailnets in ${text}`, read => read.find(tailnetsByTailnet, text)),
  ),
  ...LABELS.flatMap(text => plainRead(`find ${text}`, read => read.find(byLabel, text))),
  ...NAMES.flatMap(name =>
    plainRead(`routes to ${name}`, read => read.find(routesByBackend, `MeshEndpoints/${name}`)),
  ),
];

/** What is read second depends on what was read first. */
function follow(name: string, read: ReadObjects): unknown {
  const object = read.get(endpointsRef(name));
  return object && read.find(byTailnet, object.spec.tailnet);
}

type ValueOf = readonly [ValueName, string];
const allValues = VALUES.flatMap(([value, all]) => all.map((name): ValueOf => [value, name]));

function readOfValue([value, name]: ValueOf): Op {
  const run = (read: TrackedRead, all: Values) => read.value(all[value], name);
  return { text: `${value} of ${name}`, isDerived: true, hasStatus: true, run };
}

const ops = fc.oneof(fc.constantFrom(...plainReads), fc.constantFrom(...allValues).map(readOfValue));

type Program = { readonly program: readonly Op[]; readonly endsWithFailure: boolean };

/** Where it ends with failure, a run that reads a value that fails has failed. */
const programs: fc.Arbitrary<Program> = fc.record({
  ...{ program: fc.array(ops, { minLength: 1, maxLength: 4 }), endsWithFailure: fc.boolean() },
});

/** What a program would read now: the results of its reads, and everything that these are made of. */
type Observed = {
  readonly results: readonly string[];
  readonly direct: readonly string[];
  readonly derived: readonly string[];
  /** A derived value fails, so that it also depends on what it has read before. */
  readonly fails: boolean;
};

/** The oracle: runs a program on a store, where derived values are derived whenever they are read. */
function observe(program: readonly Op[], store: ReadObjects, all: Values): Observed {
  const [direct, derived]: [string[], string[]] = [[], []];
  let [depth, fails] = [0, false];
  const recording = (hasStatus: boolean): ReadObjects => {
    const record = <T>(what: string, result: T): T => {
      (depth === 0 ? direct : derived).push(`${what}: ${resultText(result, hasStatus)}`);
      return result;
    };
    return {
      get: ref => record(`get ${ref.namespace}/${ref.name}`, store.get(ref)),
      list: kind => record(`list ${kind}`, store.list(kind)),
      find: (index, value) => record(`find ${index.name}=${value}`, store.find(index, value)),
      members: (index, value) => record(`members ${index.name} ${value}`, store.members(index, value)),
      values: index => record(`values ${index.name}`, store.values(index)),
    };
  };
  const value = <V>(values: DerivedValues<V>, name: string): V => {
    const [known] = VALUES.find(([each]) => (all[each] as unknown) === values) ?? [];
    depth++;
    try {
      return DERIVES[known ?? 'tailnet'](() => all)(name, read) as V;
    } catch (error) {
      fails = true;
      throw error;
    } finally {
      depth--;
    }
  };
  const read: TrackedRead = { ...recording(true), exceptStatus: recording(false), value };
  const results = program.map(op => resultOf(op, read, all));
  return { results, direct, derived, fails };
}

/** The result of a read as a text; lists are sorted, and objects that were read except status do not have it. */
function resultOf(op: Op, read: TrackedRead, all: Values): string {
  return outcomeOf(() => resultText(op.run(read, all), op.hasStatus));
}

function resultText(result: unknown, hasStatus: boolean): string {
  if (Array.isArray(result)) return textOf(result.map(each => resultText(each, hasStatus)).sort());
  if (hasStatus || typeof result !== 'object' || result === null) return textOf(result);
  const { metadata, ...rest } = { ...(result as Resource), status: undefined };
  return textOf({ ...rest, metadata: { ...metadata, resourceVersion: undefined } });
}

/** A program of reads, and what its dependent knows of them. */
class ModelDependent {
  readonly #program: readonly Op[];
  readonly #endsWithFailure: boolean;
  readonly #world: World;
  readonly #reads: ReadSet;
  #open: OpenReads | undefined;
  /** What it has read last, none before its first run. */
  #last: readonly string[] = [];
  #isCertain = false;
  #isUncertain = false;
  #observed: Observed;
  /** A result has changed since: of its own reads, of those of derived values. */
  #touched = { direct: false, derived: false };
  /** It may be notified of what it, or a derived value, has read before: see `ReadSet.close`. */
  #hasOldReads = false;
  #hasFailed = false;

  constructor({ program, endsWithFailure }: Program, world: World) {
    [this.#program, this.#endsWithFailure, this.#world] = [program, endsWithFailure, world];
    this.#observed = world.observe(program);
    this.#reads = world.tracking.readsOf({
      affected: isCertain => (isCertain ? (this.#isCertain = true) : (this.#isUncertain = true)),
    });
  }

  /** Reads the first half. */
  begin(): void {
    if (this.#open) return;
    this.#open = this.#reads.open();
    [this.#isCertain, this.#isUncertain, this.#hasOldReads] = [false, false, false];
    this.#touched = { direct: false, derived: false };
    this.#last = [];
    this.#readUpTo(Math.ceil(this.#program.length / 2), this.#open);
  }

  end(): void {
    if (!this.#open) return;
    this.#readUpTo(this.#program.length, this.#open);
    this.#hasFailed = this.#endsWithFailure && this.#last.some(hasFailed);
    this.#hasOldReads ||= this.#hasFailed || this.#observed.fails;
    this.#reads.close(this.#open, !this.#hasFailed);
    this.#open = undefined;
  }

  settle(): void {
    if (this.#open || this.#last.length === 0) return;
    const hasOtherValues = this.#reads.hasOtherValues();
    if (hasOtherValues && !this.#hasOldReads) expect(this.#touched.derived).toBe(true);
    if (this.#isCertain || this.#hasFailed || (this.#isUncertain && hasOtherValues)) {
      this.begin();
      this.end();
    } else {
      expect(this.#last).toEqual(this.#observed.results);
      if (!this.#last.some(hasFailed)) expect(hasOtherValues).toBe(false);
      this.#isUncertain = false;
      this.#touched.derived = false;
    }
  }

  clear(): void {
    this.end();
    this.#reads.clear();
    this.#last = [];
    [this.#isCertain, this.#isUncertain] = [false, false];
  }

  changed(change: Change): void {
    const before = this.#observed;
    const after = (this.#observed = this.#world.observe(this.#program));
    // Values may disappear and appear again while all objects are replaced.
    const mayRepeat = change.do === 'replace-all';
    this.#touched.direct ||= hasChanged(before.direct, after.direct, mayRepeat);
    this.#touched.derived ||= hasChanged(before.derived, after.derived, mayRepeat);
    this.#hasOldReads ||= this.#open !== undefined || before.fails || after.fails;
    this.#expectNotified();
  }

  #readUpTo(end: number, open: OpenReads): void {
    const results = this.#program
      .slice(this.#last.length, end)
      .map(op => resultOf(op, open, this.#world.values));
    expect(results).toEqual(this.#observed.results.slice(this.#last.length, end));
    this.#last = [...this.#last, ...results];
  }

  /** That it is notified of all that it would read now, and of nothing but changes. */
  #expectNotified(): void {
    for (const [at, last] of this.#last.entries()) {
      const [op, now] = [this.#program[at], this.#observed.results[at]];
      const isNotified = op?.isDerived === true ? this.#isUncertain : this.#isCertain;
      if (last !== now) expect(isNotified, `of ${op?.text}: ${now}, which was ${last}`).toBe(true);
    }
    if (this.#hasOldReads) return;
    const texts = this.#program.map(({ text }) => text).join(', ');
    if (this.#isCertain) expect(this.#touched.direct, texts).toBe(true);
    if (this.#isUncertain) expect(this.#touched.derived, texts).toBe(true);
  }
}

function hasFailed(result: string): boolean {
  return result.startsWith('fails:');
}

function hasChanged(before: readonly string[], after: readonly string[], mayRepeat: boolean): boolean {
  return textOf(before) !== textOf(after) || (mayRepeat && after.some(text => text.startsWith('values')));
}

/** What reads, in parts, and is notified; `settle` reads again only if that would have other results. */
type Model = Pick<ModelDependent, 'begin' | 'end' | 'settle' | 'clear' | 'changed'>;

/** Reads a derived value, and watches it from its begin until it is cleared. */
class ModelWatcher implements Model {
  readonly #op: Op;
  readonly #derived: Derived<string | undefined>;
  readonly #name: string;
  readonly #world: World;
  readonly #watcher = { invalidated: () => (this.#isInvalidated = true) };
  #isWatching = false;
  #last = '';
  #isInvalidated = false;
  #isTouched = false;
  #observed: Observed;

  constructor([value, name]: ValueOf, world: World) {
    this.#op = readOfValue([value, name]);
    [this.#derived, this.#name, this.#world] = [world.values[value], name, world];
    this.#observed = world.observe([this.#op]);
  }

  begin(): void {
    this.#derived.watch(this.#name, this.#watcher);
    this.#isWatching = true;
    this.end();
  }

  end(): void {
    this.#last = outcomeOf(() => textOf(this.#derived.read(this.#name)));
    expect([this.#last]).toEqual(this.#observed.results);
    this.#isInvalidated = false;
    this.#isTouched = this.#observed.fails;
  }

  settle(): void {
    if (this.#isInvalidated) this.end();
  }

  clear(): void {
    this.#derived.unwatch(this.#name, this.#watcher);
    this.#isWatching = false;
    this.end();
  }

  changed(change: Change): void {
    const before = this.#observed;
    const after = (this.#observed = this.#world.observe([this.#op]));
    this.#isTouched ||= after.fails || hasChanged(before.derived, after.derived, change.do === 'replace-all');
    const mayBe = this.#isWatching && this.#isTouched;
    if (this.#isWatching && after.results[0] !== this.#last)
      expect(this.#isInvalidated, this.#op.text).toBe(true);
    if (this.#isInvalidated) expect(mayBe, this.#op.text).toBe(true);
  }
}

/** A store with derived values, dependents and watchers. */
class World {
  readonly store = new ResourceStore(indexes, failure => expect(failure).toBeUndefined());
  readonly tracking = new Tracking(this.store);
  readonly values: Values;
  #derivations = 0;

  constructor(verified: readonly ValueName[]) {
    const derived = (value: ValueName) => {
      const derive: Derive = (name, read) => {
        this.#derivations++;
        return DERIVES[value](() => this.values)(name, read);
      };
      return new Derived(this.tracking, ['MeshEndpoints', 'MeshTailnet'], derive, Object.is, {
        isVerified: verified.includes(value),
      });
    };
    const [tailnet, size, neighbours] = [derived('tailnet'), derived('size'), derived('neighbours')];
    this.values = { tailnet, size, neighbours, summary: derived('summary'), sizes: derived('sizes') };
  }

  observe(program: readonly Op[]): Observed {
    return observe(program, this.store, this.values);
  }

  /** Nothing is derived in a notification. */
  make(change: Change): void {
    const before = this.#derivations;
    if (change.do === 'put') this.store.put(structuredClone(change.object));
    else if (change.do === 'remove') this.store.remove(change.ref);
    else this.store.replaceAll(change.kind, structuredClone(change.objects) as readonly ResourceOf<Kind>[]);
    expect(this.#derivations).toBe(before);
    this.tracking.verify();
  }

  /** Where there are no dependents, nothing is kept after all objects have changed. */
  expectReleased(): void {
    for (const tailnet of TAILNETS)
      for (const object of everyObject(tailnet)) this.make({ do: 'put', object });
    for (const kind of KINDS) this.make({ do: 'replace-all', kind, objects: [] });
    expect(VALUES.map(([value]) => this.values[value].size)).toEqual(VALUES.map(() => 0));
    expect(this.tracking.size).toBe(0);
  }
}

/** An object of each name, with every label. */
function everyObject(tailnet: string): readonly Resource[] {
  const changed = { labels: Object.fromEntries(LABELS.entries()), annotations: { all: tailnet } };
  const declared = ['t', 'u'].map(name => resourceOf(named(meshTailnet({ tailnet }), name, changed)));
  return [...declared, ...NAMES.map(name => readMeshEndpoints(name, { tailnet }, changed))];
}

type Step = Change | { readonly do: 'run' | Exclude<keyof Model, 'changed'>; readonly at: number };

const acts = fc.constantFrom('begin', 'end', 'run', 'run', 'settle', 'settle', 'settle', 'clear');
const steps: fc.Arbitrary<Step> = fc.oneof(changes, fc.record({ do: acts, at: fc.nat({ max: 5 }) }));

function take(step: Step, world: World, models: readonly Model[]): void {
  if (!('at' in step)) {
    world.make(step);
    for (const model of models) model.changed(step);
  } else if (step.do === 'run') {
    for (const act of ['end', 'begin', 'end'] as const) models[step.at]?.[act]();
  } else models[step.at]?.[step.do]();
}

describe('tracked reads', () => {
  it('notify of exactly what would be read otherwise, and keep nothing that is not depended on', () => {
    const three = { minLength: 3, maxLength: 3 };
    const taken = fc.array(steps, { minLength: 20, maxLength: 80 });
    const watched = fc.array(fc.constantFrom(...allValues), three);
    const given = [
      fc.array(programs, three),
      watched,
      taken,
      fc.subarray(VALUES.map(([value]) => value)),
    ] as const;
    const property = fc.property(...given, (programs, values, all, verified) => {
      const world = new World(verified);
      const dependents = programs.map(program => new ModelDependent(program, world));
      const models = [...dependents, ...values.map(value => new ModelWatcher(value, world))];
      for (const step of all) take(step, world, models);
      for (const model of models) model.settle();
      for (const model of models) model.clear();
      world.expectReleased();
    });
    fc.assert(property, runs(300));
  });
});
