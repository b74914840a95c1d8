import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EndpointStatus } from '../../../src/api/generated/types.ts';
import { named } from '../../support/declared.ts';
import { EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { runs } from '../../support/runs.ts';

const NAMES = ['a', 'b', 'c'] as const;

type Declared = { readonly isChecked: boolean; readonly octet: number };
type Spec = Readonly<Partial<Record<string, Declared>>>;

type Step =
  | { readonly do: 'declare'; readonly spec: Spec }
  | { readonly do: 'decide'; readonly name: string; readonly error: string | undefined }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'restart' | 'pause' | 'continue' | 'remove tailnet' | 'create tailnet' };

const aDeclared = fc.option(fc.record({ isChecked: fc.boolean(), octet: fc.constantFrom(1, 2) }), {
  nil: undefined,
});
const aStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('declare' as const),
    spec: fc.record({ a: aDeclared, b: aDeclared, c: aDeclared }),
  }),
  ...[1, 2, 3].map(() =>
    fc.record({
      do: fc.constant('decide' as const),
      name: fc.constantFrom(...NAMES),
      error: fc.constantFrom(undefined, undefined, 'connection refused', 'timeout after 10s'),
    }),
  ),
  fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1000, 60_000, 900_000) }),
  fc.record({
    do: fc.constantFrom<Exclude<Step['do'], 'declare' | 'decide' | 'advance'>>(
      ...(['restart', 'pause', 'continue', 'remove tailnet', 'create tailnet'] as const),
    ),
  }),
);

/** What was decided about an endpoint, since it became so. */
type Decided = {
  /** Undefined if it is healthy. */
  readonly error: string | undefined;
  readonly since: number;
  readonly latest: number;
};

/** What the status must show, by a simpler rule: decisions are kept while address and checks of an endpoint are the same. */
class StatusModel {
  declared: Spec = { a: { isChecked: true, octet: 1 } };
  /** The spec of the last reconcile that was not paused. */
  shown: Spec = this.declared;
  isPaused = false;
  hasTailnet = true;
  readonly decided = new Map<string, Decided>();

  apply(step: Step, now: number): void {
    if (step.do === 'declare') this.declared = step.spec;
    if (step.do === 'pause') this.isPaused = true;
    if (step.do === 'continue') this.isPaused = false;
    if (step.do === 'remove tailnet') this.hasTailnet = false;
    if (step.do === 'create tailnet') this.hasTailnet = true;
    if (step.do === 'decide' && this.canDecide(step.name)) this.#decide(step.name, step.error, now);
    if (!this.isPaused) this.#show();
  }

  canDecide(name: string): boolean {
    return !this.isPaused && this.hasTailnet && this.shown[name]?.isChecked === true;
  }

  #decide(name: string, error: string | undefined, now: number): void {
    const before = this.decided.get(name);
    const since = before?.error === error ? (before?.since ?? now) : now;
    this.decided.set(name, { error, since, latest: now });
  }

  #show(): void {
    for (const name of NAMES) {
      const [before, now] = [this.shown[name], this.declared[name]];
      const isSame = before?.isChecked === true && now?.isChecked === true && before.octet === now.octet;
      if (!isSame) this.decided.delete(name);
    }
    this.shown = this.declared;
  }

  /** Everything that a write may be for, but new times; conditions have the generation of a paused object too. */
  get visible(): string {
    const { declared, isPaused, hasTailnet, decided } = this;
    const decisions = [...decided].map(([name, { error }]) => [name, error ?? 'healthy']).sort();
    return JSON.stringify([declared, isPaused, isPaused || hasTailnet, decisions]);
  }
}

const objectOf = (spec: Spec, paused: boolean): object => {
  const endpoints = NAMES.flatMap(name => {
    const { isChecked: enabled = false, octet } = spec[name] ?? {};
    return octet === undefined
      ? []
      : [endpoint({ name, meshIP: `100.64.0.${octet}`, healthCheck: { enabled } })];
  });
  const selectors = { tagSelectors: [{ key: 'web', operator: 'Exists' }] };
  return named(meshEndpoints({ endpoints, paused, ...selectors }), 'default/web');
};

const tailnet = named(meshTailnet(), 'one');

async function perform(scene: EndpointsScene, model: StatusModel, step: Step): Promise<void> {
  switch (step.do) {
    case 'declare':
    case 'pause':
    case 'continue':
      return scene.put(objectOf(model.declared, model.isPaused));
    case 'decide':
      return scene.decide(step.name, step.error);
    case 'advance':
      return scene.runtime.clock.advance(step.ms);
    case 'restart':
      return scene.restart();
    case 'remove tailnet':
      return scene.remove('MeshTailnet//one');
    case 'create tailnet':
      return scene.put(tailnet);
  }
}

function expectTruth(scene: EndpointsScene, model: StatusModel): void {
  const { endpoints = [], conditions = [], summary } = scene.status() ?? {};
  const ready = conditions.find(({ type }) => type === 'Ready');
  expect(endpoints.map(({ name }) => name)).toEqual(NAMES.filter(name => model.shown[name]));
  for (const entry of endpoints) expectEntry(entry, model);
  const healthy = endpoints.filter(({ status }) => status === 'Healthy').length;
  const isUsable = model.hasTailnet && healthy > 0;
  if (model.isPaused) expect(ready?.reason).toBe('Paused');
  else {
    expect(summary).toMatchObject({
      total: endpoints.length,
      healthy,
      ready: `${healthy}/${endpoints.length}`,
    });
    expect([ready?.status, ready?.reason === 'TailnetNotFound']).toEqual([
      isUsable ? 'True' : 'False',
      !model.hasTailnet,
    ]);
  }
}

function expectEntry(
  { name, address, status, reason, error, lastChecked }: EndpointStatus,
  model: StatusModel,
): void {
  const [declared, decided] = [model.shown[name], model.decided.get(name)];
  expect(address).toBe(`100.64.0.${declared?.octet}:8080`);
  const whyUnhealthy = lastChecked === undefined ? 'NotCheckedYet' : 'CheckFailed';
  expect(reason).toBe(error === undefined ? undefined : whyUnhealthy);
  if (!declared?.isChecked) expect([status, error, lastChecked]).toEqual(['Healthy', undefined, undefined]);
  else if (!decided)
    expect([status, error, lastChecked]).toEqual(['Unhealthy', 'not checked yet', undefined]);
  else {
    expect(status).toBe(decided.error === undefined ? 'Healthy' : 'Unhealthy');
    expect(error).toBe(decided.error);
    const time = Date.parse(lastChecked ?? '');
    expect(time).toBeGreaterThanOrEqual(decided.since);
    expect(time).toBeLessThanOrEqual(decided.latest);
  }
}

describe('the status of a MeshEndpoints', () => {
  it('is true after each step of any history, and is written for nothing else', async () => {
    const history = fc.asyncProperty(fc.array(aStep, { maxLength: 25, size: 'max' }), async steps => {
      const model = new StatusModel();
      const scene = await EndpointsScene.start(tailnet, objectOf(model.declared, false));
      for (const step of steps) {
        if (step.do === 'decide' && !model.canDecide(step.name)) continue;
        const [visible, writes] = [model.visible, scene.writes];
        model.apply(step, scene.now().getTime());
        await perform(scene, model, step);
        const changes = model.visible === visible ? 0 : 1;
        // New times are written 10 to 15 minutes after the last ones, at a resync.
        const refreshes = step.do === 'advance' ? 1 : 0;
        expect(scene.writes - writes).toBeLessThanOrEqual(changes + refreshes);
        expectTruth(scene, model);
      }
    });
    await fc.assert(history, runs(100));
  });
});
