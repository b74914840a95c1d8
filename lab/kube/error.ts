/** One thing that the API server found wrong in an object. */
export type KubeCause = { readonly reason: string; readonly field: string; readonly message: string };

/** The API server refused a request, or does not know a kind: its status code, its reason and each cause it told. */
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

/** The error that an answer tells of. What is no Status (a page of a missing path, a proxy's words) is shown as it is. */
export function errorOfAnswer(request: string, { status, body }: Refusal): KubeError {
  const told = isStatus(body) ? body : {};
  const { reason = status === 404 ? 'NotFound' : 'Unknown', details, message } = told;
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
