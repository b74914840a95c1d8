import type { Fault } from '../../../../lab/control-api/faults.ts';
import { KubeError } from '../../../../src/kubernetes/transport/transport.ts';
import { requestError } from '../../../../src/kubernetes/write/errors.ts';
import { sendWithRetries } from '../../../../src/kubernetes/write/requests.ts';
import type { VirtualClock } from '../../virtual-clock.ts';

/** What a server that has not carried out a call responds. */
const RESPONSES = ['is refused', 'conflicts', 'is throttled', 'meets an internal error'] as const;

/** What happens at one call of the controller: a request to the control API, or a call of a port of Kubernetes. */
export const DISTURBANCES = [
  /** It is not carried out, and there is no response. */
  'fails',
  ...RESPONSES,
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

/** How calls of several runs are disturbed. */
export type Way =
  | Disturbance['is']
  /** In one of these ways, the next call in the next one. */
  | 'gets an error response';

/** How the call of a run is disturbed, after a number of other runs. */
export function disturbanceOf(way: Way, runs: number): Disturbance['is'] {
  if (way !== 'gets an error response') return way;
  return RESPONSES[runs % RESPONSES.length] ?? RESPONSES[0];
}

const READS =
  /^(get|secret|configMap|httpGet|unknown|probe|devices\.list|device\.get|keys\.list|services\.list)\b/;

/** Whether a call changes nothing. */
export function isRead(call: string): boolean {
  return READS.test(call);
}

/** Reads whose adapters retry nothing. */
const READ_ONCE = /^(secret|configMap|httpGet|probe)\b/;

const RETRY_AFTER_SECONDS = 2;
const RETRY_AFTER_MS = RETRY_AFTER_SECONDS * 1000;

/** How a call that is not carried out fails, at an API server and at the control API. */
const FAILURES = {
  fails: {
    kube: new KubeError('Unreachable', 'the connection was reset'),
    control: { is: 'reset', when: 'before' },
  },
  'is refused': {
    kube: new KubeError('Forbidden', 'forbidden', { status: 403 }),
    control: { is: 'answer', status: 403, json: { message: 'forbidden' } },
  },
  conflicts: {
    kube: new KubeError('Conflict', 'the object has been modified', { status: 409 }),
    control: { is: 'answer', status: 409, json: { message: 'conflict' } },
  },
  'is throttled': {
    kube: new KubeError('Busy', 'too many requests', { status: 429, retryAfterMs: RETRY_AFTER_MS }),
    control: {
      is: 'answer',
      status: 429,
      json: { message: 'too many requests' },
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    },
  },
  'meets an internal error': {
    kube: new KubeError('Failed', 'internal error', { status: 500 }),
    control: { is: 'answer', status: 500, json: { message: 'internal server error' } },
  },
} as const satisfies Readonly<Record<string, { readonly kube: KubeError; readonly control: Fault }>>;

/** What becomes of a call: it is not carried out, or it is, and its response is lost. */
type Next = keyof typeof FAILURES | 'response lost' | 'crash' | undefined;

export type CallsDeps = {
  readonly clock: VirtualClock;
  /** Lets mesh pods take a step. */
  readonly stepPods: () => void;
};

/** The calls of one process of the controller, one of which may be disturbed. */
export class Calls {
  readonly #deps: CallsDeps;
  /** Every call so far, such as `apply StatefulSet meshd-example` and `keys.create`. */
  readonly names: string[] = [];
  /** Whether the process has ended: no further call is carried out. */
  isOver = false;
  #isFailing = false;
  #disturbance: Disturbance | undefined;

  constructor(deps: CallsDeps) {
    this.#deps = deps;
  }

  /** Disturbs a call; the next one is 1. */
  disturb({ at, is }: Disturbance): void {
    this.#disturbance = { at: this.names.length + at, is };
  }

  /** Called at the end of each reconcile. */
  reconciled(): void {
    this.#isFailing = false;
  }

  /** The same port with counted calls of its methods; those of writes have the retries of the real adapter. */
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
    const next = this.#next(route);
    if (next === 'crash') this.isOver = true;
    if (next === 'response lost' || next === 'crash') return { is: 'reset', when: 'after' };
    return next && FAILURES[next].control;
  }

  async #perform(name: string, act: () => unknown): Promise<unknown> {
    const send = async () => {
      const next = this.#next(name);
      if (next !== undefined && next in FAILURES) throw FAILURES[next as keyof typeof FAILURES].kube;
      const result = await act();
      if (next === 'crash') this.isOver = true;
      if (next !== undefined) throw FAILURES.fails.kube;
      return result;
    };
    try {
      if (READ_ONCE.test(name)) return await send();
      const { clock } = this.#deps;
      return await sendWithRetries(REQUEST, { transport: { send }, clock, random: () => 0 });
    } catch (failure) {
      throw requestError(`the simulated API server failed: ${name}`, failure);
    }
  }

  #next(name: string): Next {
    if (this.isOver || this.#isFailing) return 'fails';
    this.names.push(name);
    if (this.#disturbance?.at !== this.names.length) return undefined;
    const { is } = this.#disturbance;
    switch (is) {
      case 'fails':
      case 'is refused':
      case 'conflicts':
      case 'is throttled':
      case 'meets an internal error':
        return is;
      case 'loses its response':
        return 'response lost';
      case 'is the last to be carried out':
        this.#isFailing = true;
        return 'response lost';
      case 'is followed by a crash':
        return 'crash';
      case 'comes after a step of the pods':
        this.#deps.stepPods();
        return undefined;
    }
  }
}

/** What a call sends does not matter. */
const REQUEST = { verb: 'get', path: '/' } as const;

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
