import { describe, expect, it } from 'vitest';
import { NO_HOSTS, readHosts, withHosts } from '../../../src/controllers/vip-services/hosts.ts';
import { ControlError } from '../../../src/control/control.ts';

/** The interval of lists by default. */
const SYNC_MS = 30_000;

const HOST = { deviceId: 'host', isApproved: true };

/** Services that a device serves from some time on, and what is known of that. */
class World {
  readonly servedFrom = new Map<string, number>();
  /** When hosts were read. */
  readonly calls: number[] = [];
  readonly foundAt = new Map<string, number>();
  /** Services whose hosts cannot be read. */
  readonly refused = new Set<string>();
  readonly #isAdvertised: boolean;
  #now = 0;
  #memory = NO_HOSTS;

  constructor(servedFrom: Readonly<Record<string, number>>, isAdvertised = true) {
    this.#isAdvertised = isAdvertised;
    for (const [name, from] of Object.entries(servedFrom)) this.servedFrom.set(name, from);
  }

  /** Reads them for a time, as often as that is wanted. */
  async run(ms: number): Promise<void> {
    for (const end = this.#now + ms; this.#now < end;) {
      const nextMs = await this.#read();
      this.#now += Math.min(SYNC_MS, nextMs);
    }
  }

  async #read(): Promise<number> {
    const now = this.#now;
    const names = [...this.servedFrom.keys()];
    const advertised = new Set(this.#isAdvertised ? names : []);
    const serviceHosts = (name: string) => {
      this.calls.push(now);
      if (this.refused.has(name)) return Promise.reject(new ControlError('Unavailable', 'refused'));
      return Promise.resolve((this.servedFrom.get(name) ?? Infinity) <= now ? [HOST] : []);
    };
    const options = { names, advertised, before: this.#memory, online: new Set(['host']), now };
    const { memory, nextMs } = await readHosts(options, { serviceHosts });
    this.#memory = memory;
    for (const [name, { hosts }] of memory.byService)
      if (hosts.length > 0 && !this.foundAt.has(name)) this.foundAt.set(name, now);
    return nextMs;
  }
}

describe('the hosts of VIP services', () => {
  it.each([500, 3000, 12_000, 70_000, 175_000])(
    'are found within 10 s and the time that they took, if that is %i ms',
    async ms => {
      const world = new World({ 'svc:web': ms });
      await world.run(300_000);
      const lateMs = (world.foundAt.get('svc:web') ?? Infinity) - ms;
      expect(lateMs).toBeLessThanOrEqual(Math.min(10_000, Math.max(2000, ms)));
    },
  );

  it('are read each minute where none is expected, or none came for three minutes', async () => {
    const idle = new World({ 'svc:web': Infinity }, false);
    await idle.run(600_000);
    expect(idle.calls).toHaveLength(10);
    const awaited = new World({ 'svc:web': Infinity });
    await awaited.run(600_000);
    expect(awaited.calls.filter(at => at > 200_000)).toHaveLength(6);
  });

  it('cost no more than 20 requests in 30 s, and those of a new service among many come first', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `svc:web-${index}`);
    const world = new World(Object.fromEntries(names.map(name => [name, 0])));
    await world.run(900_000);
    world.servedFrom.set('svc:new', 920_000);
    await world.run(120_000);
    expect(world.foundAt.get('svc:new')).toBeLessThanOrEqual(960_000);
    const most = world.calls.map(from => world.calls.filter(at => at >= from && at < from + 30_000).length);
    expect(Math.max(...most)).toBe(20);
    expect(world.foundAt.size).toBe(501);
  });

  it('are read of the others where those of one cannot be', async () => {
    const world = new World({ 'svc:a': 0, 'svc:b': 0, 'svc:c': 0 });
    world.refused.add('svc:a');
    await world.run(300_000);
    expect([...world.foundAt.keys()].sort()).toEqual(['svc:b', 'svc:c']);
    world.refused.clear();
    await world.run(300_000);
    expect(world.foundAt.size).toBe(3);
  });
});

it('are shown with the names of their owners as an API server stores them, since these may be any text', () => {
  const state = { status: 'Registered', reason: 'NotServed', text: '' } as const;
  const of = {
    installation: '0a1b2c3d',
    strategy: 'shared',
    ports: [],
    tags: [],
    heartbeat: new Date(0),
  } as const;
  const owners = [{ ...of, cluster: `${'x'.repeat(63)}🚀!`, object: 'default/\ud83d' }];
  const known = { name: 'svc:web', hosts: [], devices: new Map(), online: new Set<string>(), tags: [] };
  const [shown] = withHosts(state, { ...known, owners }).owners ?? [];
  expect(shown).toMatchObject({ installation: '0a1b2c3d', cluster: `${'x'.repeat(63)}🚀` });
  expect(shown).toMatchObject({ object: 'default/\ufffd' });
});
