import type { Check } from './target.ts';

/** What a probe found out about an endpoint. */
export type ProbeResult =
  | { readonly is: 'success' }
  /** A short text for people, without secrets: timeout after 10s; connection refused; got 503, expected 200. */
  | { readonly is: 'failure'; readonly error: string }
  /** It failed on its way to the endpoint, which says nothing about the endpoint. */
  | { readonly is: 'unknown'; readonly why: string };

/** Carries out a check once. It never rejects, and ends soon after the timeout of the check or an abort. */
export type Probe = (check: Check, signal: AbortSignal) => Promise<ProbeResult>;
