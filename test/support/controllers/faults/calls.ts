import type { Fault } from '../../../../lab/control-api/faults.ts';
import { ResourceError } from '../../../../src/store/resources.ts';
import type { ResourceErrorReason } from '../../../../src/store/resources.ts';

/** What happens at one call of the controller: a request to the control API, or a call of a port of Kubernetes. */
export const DISTURBANCES = [
  /** It is not carried out. */
  'fails',
  /** It is not carried out, for a reason that a retry does not expect to pass. */
  'is refused',
  /** It is carried out, and fails nevertheless. */
  'loses its response',
  /** The same, and every later call fails until the reconcile ends. */
  'is the last to be carried out',
  /** It is carried out, and the process ends. */
  'is followed by a crash',
  /** Mesh pods take a step before it. */
  'comes after a step of the pods',
] as const;

/** What happens at which call; the next is 1. */
export type Disturbance = { readonly at: number; readonly is: (typeof DISTURBANCES)[number] };

const READS = /^(get|secret|configMap|httpGet|probe|devices\.list|device\.get|keys\.list)\b/;

/** Whether a call changes nothing. */
export function isRead(call: string): boolean {
  return READS.test(call);
}

/** The calls of one process of the controller, one of which may be disturbed. */
export class Calls {
  readonly #stepPods: () => void;
  /** Every call so far, such as `apply StatefulSet meshd-example` and `keys.create`. */
  readonly names: string[] = [];
  /** Whether the process has ended: no further call is carried out. */
  isOver = false;
  #isFailing = false;
  #disturbance: Disturbance | undefined;

  /** `stepPods` lets mesh pods take a step. */
  constructor(stepPods: () => void) {
    this.#stepPods = stepPods;
  }

  /** Disturbs a call; the next one is 1. */
  disturb({ at, is }: Disturbance): void {
    this.#disturbance = { at: this.names.length + at, is };
  }

  /** Called at the end of each reconcile. */
  reconciled(): void {
    this.#isFailing = false;
  }

  /** The same port with counted calls of its methods. */
  counted<T extends object>(port: T): T {
    const perform = (name: string, act: () => unknown) => this.#perform(name, act);
    return new Proxy(port, {
      get: (target, method) => {
        const value: unknown = Reflect.get(target, method, target);
        if (typeof value !== 'function') return value;
        return (...given: readonly unknown[]) => {
          const name = [String(method), ...given.map(wordOf)].filter(word => word !== '').join(' ');
          return perform(name, () => Reflect.apply(value, target, given) as unknown);
        };
      },
    });
  }

  /** The fault of the next request to the control API. */
  request(route: string): Fault | undefined {
    const before = { is: 'reset', when: 'before' } as const;
    const after = { is: 'reset', when: 'after' } as const;
    switch (this.#next(route)) {
      case 'not carried out':
        return before;
      case 'refused':
        return { is: 'answer', status: 403, json: { message: 'forbidden' } };
      case 'response lost':
        return after;
      case 'crash':
        this.isOver = true;
        return after;
      case undefined:
        return undefined;
    }
  }

  async #perform(name: string, act: () => unknown): Promise<unknown> {
    const next = this.#next(name);
    const failed = (reason: ResourceErrorReason = 'Unavailable') =>
      new ResourceError(reason, `the simulated API server failed: ${name}`);
    if (next === 'refused') throw failed('Refused');
    if (next === 'not carried out') throw failed();
    const result = await act();
    if (next === 'crash') this.isOver = true;
    if (next !== undefined) throw failed();
    return result;
  }

  #next(name: string): 'not carried out' | 'refused' | 'response lost' | 'crash' | undefined {
    if (this.isOver || this.#isFailing) return 'not carried out';
    this.names.push(name);
    if (this.#disturbance?.at !== this.names.length) return undefined;
    switch (this.#disturbance.is) {
      case 'fails':
        return 'not carried out';
      case 'is refused':
        return 'refused';
      case 'loses its response':
        return 'response lost';
      case 'is the last to be carried out':
        this.#isFailing = true;
        return 'response lost';
      case 'is followed by a crash':
        return 'crash';
      case 'comes after a step of the pods':
        this.#stepPods();
        return undefined;
    }
  }
}

/** A word for an argument of a call; empty for what is not a name or an object with one. */
function wordOf(given: unknown): string {
  if (typeof given === 'string') return given;
  const {
    kind = '',
    metadata,
    name,
  } = Object(given) as {
    readonly kind?: string;
    readonly name?: string;
    readonly metadata?: { readonly name?: string };
  };
  return `${kind} ${metadata?.name ?? name ?? ''}`.trim();
}
