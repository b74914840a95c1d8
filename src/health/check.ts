import { createHash } from 'node:crypto';
import type { SocketAddress } from '../api/socket-address.ts';

/** A health check of one endpoint. Its headers may hold secrets, so it is never logged. */
export type Check = {
  /** The name of the MeshTailnet. */
  readonly tailnet: string;
  /** The namespace of the object, which takes turns with others; so equal checks of two namespaces are two. */
  readonly namespace: string;
  /** The addresses of the service, which are tried in this order, and its port. */
  readonly target: { readonly addresses: readonly string[]; readonly port: number };
  readonly via: CheckPath;
  readonly intervalMs: number;
  /** At most the interval. */
  readonly timeoutMs: number;
  readonly healthyThreshold: number;
  readonly unhealthyThreshold: number;
  readonly settings: CheckSettings;
};

/** How a check reaches the service: as traffic does. */
type CheckPath =
  /** Through the HTTP CONNECT proxy of a mesh pod. */
  | { readonly is: 'pool' }
  /** Through the UDP relay of a mesh pod. */
  | { readonly is: 'relay'; readonly port: number }
  /** Without a proxy. */
  | { readonly is: 'direct' };

/** What is sent, and what counts as a success. */
export type CheckSettings =
  | {
      readonly type: 'HTTP';
      readonly host: string;
      readonly path: string;
      /** Without Host; values may be secret. */
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly expectedStatus: number;
      /** Undefined for HTTP without TLS. */
      readonly tls: CheckTls | undefined;
    }
  | {
      readonly type: 'GRPC';
      readonly authority: string;
      /** The empty name is the whole server. */
      readonly service: string;
      readonly tls: CheckTls | undefined;
    }
  | { readonly type: 'TCP' }
  | { readonly type: 'UDP' };

/** The TLS of a check. */
export type CheckTls = {
  readonly serverName: string;
  /** PEM; the roots of the system without it. */
  readonly ca: string | undefined;
  readonly minVersion: '1.2' | '1.3' | undefined;
  readonly insecureSkipVerify: boolean;
};

/** Equal for equal checks; it holds no secret. */
export function checkKey(check: Check): string {
  return createHash('sha256').update(JSON.stringify(check)).digest('base64url');
}

/** A mesh pod that is ready, or a proxy that others run. */
export type ProbeProxy = {
  /** For errors and logs: the name of the pod, or the address of the proxy. */
  readonly name: string;
  /** Its HTTP CONNECT proxy. */
  readonly proxy: SocketAddress;
  /** The address of its pod, where health and relay answer; undefined for a proxy that others run. */
  readonly pod: string | undefined;
};

/** The members of the pool of a MeshTailnet that can carry a check now. */
export type ProbeProxies = (tailnet: string) => readonly ProbeProxy[];

/**
 * Finds out whether the members of the pool of a MeshTailnet still belong to it, where no check reaches an endpoint through any of
 * them: one that does not is no member any more once this resolves.
 */
export type ConfirmMembers = (tailnet: string) => Promise<void>;

/** What a probe found out about an endpoint. */
export type ProbeResult =
  | { readonly is: 'success' }
  /**
   * A short text for people, without secrets: timeout after 10s; connection refused; got 503, expected 200. The code is for machines:
   * of two failures with one code the cause is the same.
   */
  | { readonly is: 'failure'; readonly error: string; readonly code: string }
  /** It failed on its way to the endpoint, so it is no result of the endpoint. */
  | { readonly is: 'unknown'; readonly why: string };

/** Carries out a check once. It never rejects, and ends soon after the timeout of the check or an abort. */
export type Probe = (check: Check, signal: AbortSignal) => Promise<ProbeResult>;
