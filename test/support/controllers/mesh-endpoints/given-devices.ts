import type { Device, TailnetView } from '../../../../src/control/control.ts';
import type { DeviceLists } from '../../../../src/controllers/mesh-endpoints/discovery/discovery.ts';

type View = Omit<TailnetView, 'nextMs'>;

/** A device that may be an endpoint: it is online, has this name in example.ts.net, and these tags without their prefix. */
export function device(
  name: string,
  tags: readonly string[] = ['web'],
  fields: Partial<Device> = {},
): Device {
  return {
    id: `n${name}CNTRL`,
    name: `${name}.example.ts.net`,
    hostname: name,
    addresses: ['100.64.0.1', 'fd7a:115c:a1e0::1'],
    tags: tags.map(tag => `tag:${tag}`),
    isAuthorized: true,
    isOnline: true,
    isExternal: false,
    blocksIncoming: false,
    expires: undefined,
    isExpired: false,
    ...fields,
  };
}

/** Lists of devices, as a test gives them. */
export class GivenDevices implements DeviceLists {
  readonly #views = new Map<string, View>();
  readonly #listeners = new Set<(tailnet: string) => void>();
  /** The ids that were expected, by tailnet. */
  readonly expected: string[] = [];

  lastView(tailnet: string): View | undefined {
    return this.#views.get(tailnet);
  }

  subscribe(listener: (tailnet: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** It forgets none. */
  retain(): () => void {
    return () => undefined;
  }

  expect(tailnet: string, ids: readonly string[]): void {
    const view = this.#views.get(tailnet);
    this.expected.push(...ids);
    const unknown = ids.filter(id => !view?.devices?.some(each => each.id === id));
    if (view) this.#views.set(tailnet, { ...view, expected: new Set([...view.expected, ...unknown]) });
  }

  forget(tailnet: string): void {
    this.#views.delete(tailnet);
  }

  list(tailnet: string, devices: readonly Device[], fields: Partial<View> = {}): void {
    const known = this.#views.get(tailnet);
    this.#views.set(tailnet, {
      missing: new Map<string, number>(),
      expected: new Set<string>(),
      isStale: false,
      lastSuccess: undefined,
      error: undefined,
      hasServices: undefined,
      token: undefined,
      ...known,
      devices,
      ...fields,
    });
    for (const listener of this.#listeners) listener(tailnet);
  }
}
