import { plainText } from './http.ts';
import type { HttpResponse, HttpRequest, Route } from './http.ts';

/** Returns why a part is not ready, or undefined if it is; synchronous, so it must be fast. */
type ReadyCheck = () => string | undefined;

/** The readiness of a process: ready if all checks pass, and never during shutdown. */
export interface Readiness {
  /** Adds a check; returns the function that removes it. */
  add(name: string, check: ReadyCheck): () => void;
  /** Makes the process unready for good. */
  stop(): void;
  /** The result of each check; undefined if it passes. */
  failures(): ReadonlyMap<string, string | undefined>;
}

/** Readiness without checks, so ready until it is stopped. */
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
 * The probes of Kubernetes: /livez and /healthz succeed while the event loop runs, /readyz while all checks pass. With
 * ?verbose, or where a check fails, the response lists each check.
 */
export function healthRoutes(readiness: Readiness): readonly Route[] {
  const live = (name: string): Route => ({
    path: `/${name}`,
    handle: request => report(name, new Map([['ping', undefined]]), request),
  });
  return [
    live('livez'),
    live('healthz'),
    { path: '/readyz', handle: request => report('readyz', readiness.failures(), request) },
  ];
}

function report(
  name: string,
  failures: ReadonlyMap<string, string | undefined>,
  { query }: HttpRequest,
): HttpResponse {
  const hasFailed = [...failures.values()].some(failure => failure !== undefined);
  if (!hasFailed && !query.has('verbose')) return onceOnly(plainText(200, 'ok'));
  const lines = [...failures].map(([part, failure]) =>
    failure === undefined ? `[+]${part} ok` : `[-]${part} failed: ${failure}`,
  );
  const verdict = `${name} check ${hasFailed ? 'failed' : 'passed'}`;
  return onceOnly(plainText(hasFailed ? 503 : 200, [...lines, verdict, ''].join('\n')));
}

/** Idle keep-alive connections must not use up the connection limit. */
function onceOnly(answer: HttpResponse): HttpResponse {
  return { ...answer, headers: { connection: 'close' } };
}
