import { Writable } from 'node:stream';
import { Exec } from '@kubernetes/client-node';
import type { V1Status } from '@kubernetes/client-node';
import { KubeError } from '../transport/transport.ts';
import { kubeErrorOf, libraryConfig } from './port-forward.ts';
import type { Socket } from './port-forward.ts';
import type { RestConfig } from './rest-config.ts';

/** A command and its arguments, which no shell reads, in a container of a pod. */
export type PodCommand = {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
};

/** How a command has ended. */
export type CommandResult = { readonly exitCode: number; readonly stderr: string };

const MAX_STDERR = 64 * 1024;

/** Runs a command without input through the API server, as kubectl exec does; fails with KubeError, with Aborted after a timeout. */
export async function runInPod(
  config: RestConfig,
  { namespace, pod, container, command }: PodCommand,
  timeoutMs: number,
): Promise<CommandResult> {
  const what = `${command[0] ?? ''} in container ${container} of pod ${namespace}/${pod}`;
  let stderr = '';
  const errors = new Writable({
    write: (chunk: Buffer, _, done) => {
      stderr = (stderr + chunk.toString()).slice(0, MAX_STDERR);
      done();
    },
  });
  let socket: Socket | undefined;
  try {
    const status = await new Promise<V1Status>((resolve, reject) => {
      AbortSignal.timeout(timeoutMs).onabort = () => {
        reject(new KubeError('Aborted', `${what}: no answer within ${timeoutMs / 1000} s`));
      };
      const exec = new Exec(libraryConfig(config, timeoutMs));
      exec.exec(namespace, pod, container, [...command], null, errors, null, false, resolve).then(
        opened => {
          socket = opened as Socket;
          socket.onclose = () => reject(new KubeError('Unreachable', `${what}: the connection has ended`));
        },
        (event: unknown) => reject(kubeErrorOf(event, what)),
      );
    });
    return { exitCode: exitCodeOf(status, what), stderr };
  } finally {
    socket?.terminate();
  }
}

/** A command that cannot be started has none. */
function exitCodeOf({ status, message, details }: V1Status, what: string): number {
  if (status === 'Success') return 0;
  const code = Number(details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message);
  if (Number.isInteger(code)) return code;
  throw new KubeError('Unreachable', `${what}: ${message ?? 'failed'}`);
}
