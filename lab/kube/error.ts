/** A cause in a Status of the API server. */
export type KubeCause = { readonly reason: string; readonly field: string; readonly message: string };

/** An error response of the API server: status code, reason and causes. */
export class KubeError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly KubeCause[];

  constructor(message: string, status: number, reason: string, causes: readonly KubeCause[] = []) {
    super(message);
    this.name = 'KubeError';
    this.status = status;
    this.reason = reason;
    this.causes = causes;
  }
}

/** The error of a response. A body that is no Status, such as a proxy's page, is the message. */
export function errorOfAnswer(request: string, { status, body }: Refusal): KubeError {
  const parsed = isStatus(body) ? body : {};
  const { reason = status === 404 ? 'NotFound' : 'Unknown', details, message } = parsed;
  const shown = message ?? (typeof body === 'string' ? body.trim() : JSON.stringify(body));
  return new KubeError(`${request}: ${status} ${reason}: ${shown}`, status, reason, causesOf(details));
}

type Refusal = { readonly status: number; readonly body: unknown };

type Status = {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly Partial<KubeCause>[] };
};

function isStatus(body: unknown): body is Status {
  return typeof body === 'object' && body !== null && 'kind' in body && body.kind === 'Status';
}

function causesOf(details: Status['details']): readonly KubeCause[] {
  return (details?.causes ?? []).map(({ reason = '', field = '', message = '' }) => ({
    reason,
    field,
    message,
  }));
}
