import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { KindName } from '../../../src/api/generated/kinds.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import { errorOfAnswer } from '../../../lab/kube/error.ts';
import type { KubeCause } from '../../../lab/kube/error.ts';
import type { KubeAnswer } from '../../../lab/kube/transport.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The API server's verdict on an object: how it would store it, or what is wrong with it. */
export type Judgement =
  | { readonly valid: true; readonly object: Fields }
  | { readonly valid: false; readonly message: string; readonly causes: readonly KubeCause[] };

/** Unknown fields are dropped without a warning, as in our own validation. */
const LENIENT = 'fieldValidation=Ignore';
const DRY_RUN = `dryRun=All&${LENIENT}`;

/**
 * Validates an object with the API server without storing it. A status is a subresource: it is validated on an object
 * that exists for that time, under a name that the server generates.
 */
export async function judge(
  client: KubeClient,
  namespace: string,
  kind: KindName,
  object: Fields,
): Promise<Judgement> {
  const path = await client.pathOf({ apiVersion: API_VERSION, kind, namespace });
  const created = judgementOf(await client.request('POST', `${path}?${DRY_RUN}`, object));
  if (!created.valid || !('status' in object)) return created;
  const status = await judgeStatus(client, path, object);
  if (!status.valid) return status;
  return { valid: true, object: { ...status.object, metadata: created.object['metadata'] } };
}

async function judgeStatus(client: KubeClient, path: string, object: Fields): Promise<Judgement> {
  // Without other metadata: an owner that does not exist would have it garbage collected, and a finalizer would keep
  // it.
  const { namespace } = object['metadata'] as Fields;
  const standIn = { ...object, metadata: { namespace, generateName: 'judged-' } };
  const stored = judgementOf(await client.request('POST', `${path}?${LENIENT}`, standIn));
  if (!stored.valid) throw new Error(`an object was accepted, and then not: ${stored.message}`);
  const metadata = stored.object['metadata'] as { readonly name: string };
  const own = `${path}/${metadata.name}`;
  try {
    return judgementOf(await client.request('PUT', `${own}/status?${DRY_RUN}`, { ...object, metadata }));
  } finally {
    await client.request('DELETE', own);
  }
}

/** The verdict in a response. */
export function judgementOf(answer: KubeAnswer): Judgement {
  if (answer.status < 300) return { valid: true, object: answer.body as Fields };
  const { message, causes } = errorOfAnswer('the server', answer);
  // 400: not even its kind can be decoded. Any other status code is not about the object.
  if (answer.status !== 422 && answer.status !== 400) throw new Error(message);
  return { valid: false, message, causes };
}
