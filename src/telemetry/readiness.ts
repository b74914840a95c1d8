import { plainText } from './http.ts';
import type { Answer, Question, Route } from './http.ts';

/** Says why something is not ready, or nothing where it is. Answers at once: what takes time is found out before. */
type ReadyCheck = () => string | undefined;

/** Whether the process can do its work: only if all of its parts say so, and never once it stops. */
export interface Readiness {
  /** Asks a part from now on; gives the function that ends it. */
  add(name: string, check: ReadyCheck): () => void;
  /** Not ready any more, whatever the parts say. */
  stop(): void;
  /** Why each part is not ready; nothing where it is. */
  failures(): ReadonlyMap<string, string | undefined>;
}

/** A process without parts is ready until it stops. */
export function createReadiness(): Readiness {
  const checks = new Map<string, ReadyCheck>();
  let isStopping = false;
  return {
    add: (name, check) => {
      checks.set(name, check);
      return () => {
        if (checks.get(name) === check) checks.delete(name);
      };
    },
    stop: () => {
      isStopping = true;
    },
    failures: () => {
      const failures = [...checks].map(([name, check]) => [name, failureOf(check)] as const);
      return new Map(isStopping ? [...failures, ['stop', 'the process is stopping']] : failures);
    },
  };
}

function failureOf(check: ReadyCheck): string | undefined {
  try {
    return check();
  } catch {
    return 'the check itself failed';
  }
}

/**
 * The questions that Kubernetes asks: /healthz is answered as long as the event loop turns, /readyz as the parts say;
 * with ?verbose, or where something fails, each part is listed.
 */
export function healthRoutes(readiness: Readiness): readonly Route[] {
  return [
    { path: '/healthz', answer: question => report('healthz', new Map([['ping', undefined]]), question) },
    { path: '/readyz', answer: question => report('readyz', readiness.failures(), question) },
  ];
}

function report(
  name: string,
  failures: ReadonlyMap<string, string | undefined>,
  { query }: Question,
): Answer {
  const hasFailed = [...failures.values()].some(failure => failure !== undefined);
  if (!hasFailed && !query.has('verbose')) return onceOnly(plainText(200, 'ok'));
  const lines = [...failures].map(([part, failure]) =>
    failure === undefined ? `[+]${part} ok` : `[-]${part} failed: ${failure}`,
  );
  const verdict = `${name} check ${hasFailed ? 'failed' : 'passed'}`;
  return onceOnly(plainText(hasFailed ? 503 : 200, [...lines, verdict, ''].join('\n')));
}

/** Connections that are kept must not take the place of those who ask next. */
function onceOnly(answer: Answer): Answer {
  return { ...answer, headers: { connection: 'close' } };
}
