import { AccessError } from './access-error.ts';
import { ConnectionError } from './connection.ts';
import { KubeError } from './kube-error.ts';

/** What anything that was thrown means to whoever asked. */
export function kubeErrorOf(thrown: unknown, what: string): KubeError {
  if (thrown instanceof KubeError) return thrown;
  const message = `${what}: ${thrown instanceof Error ? thrown.message : 'it failed'}`;
  if (thrown instanceof AccessError) return new KubeError('Unauthorized', message);
  if (!(thrown instanceof ConnectionError)) return new KubeError('Invalid', message);
  return new KubeError(thrown.reason === 'Garbled' ? 'Garbled' : 'Unreachable', message);
}
