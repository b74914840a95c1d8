/** What is asked, in the words of RBAC: metrics and refusals use them too. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'apply' | 'patch' | 'delete';

/** A request to an API server. */
export type KubeRequest = {
  readonly verb: Verb;
  /** Without the server: /api/v1/namespaces. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly value: unknown };
  /** Ends the request, whatever has become of it. */
  readonly signal?: AbortSignal;
};

/** Speaks to an API server, as somebody, over few connections that are kept. All fail with KubeError. */
export interface KubeTransport {
  /** Gives the JSON of a successful answer. It ends by itself: no answer is waited for for ever. */
  ask(request: KubeRequest): Promise<unknown>;
  /**
   * Fulfilled when the server has begun a successful answer, with the JSON values of its lines as they come; they end
   * where the server ends the answer at the end of a line. How long silence is borne is for the caller to decide.
   */
  follow(request: KubeRequest): Promise<AsyncIterable<unknown>>;
  /** Ends all requests and connections; those who wait for them fail. */
  close(): Promise<void>;
}
