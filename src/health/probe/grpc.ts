import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { CallCredentials, ChannelCredentials, Client, status } from '@grpc/grpc-js';
import type { experimental, ServiceError } from '@grpc/grpc-js';
import { service as healthService } from 'grpc-health-check';
import type { Attempt } from './attempt.ts';
import { CheckError, checkErrorOf } from './check-error.ts';
import type { CheckSettings } from '../check.ts';
import { USER_AGENT } from './tunnel.ts';

type GrpcSettings = Extract<CheckSettings, { readonly type: 'GRPC' }>;

/** The client of gRPC health checks over connections that are open. */
export interface GrpcHealth {
  /** Calls grpc.health.v1.Health/Check over a connection. */
  check(attempt: Attempt, socket: Socket, settings: GrpcSettings): Promise<void>;
  close(): void;
}

const OPTIONS = {
  'grpc.primary_user_agent': USER_AGENT,
  'grpc.max_receive_message_length': 65_536,
  'grpc-node.max_session_memory': 1,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
};

/**
 * Creates the client. The library dials every connection itself, which would hide why a tunnel or TLS failed, so it dials a
 * listener on loopback, and its credentials put the open connection in the place of that one.
 */
export function createGrpcHealth(): GrpcHealth {
  const { Check: method } = healthService;
  if (!method) throw new TypeError('grpc-health-check has no method Check');
  let listening: Promise<Server> | undefined;
  const check = async (attempt: Attempt, socket: Socket, settings: GrpcSettings) => {
    listening ??= listen().catch((error: unknown) => {
      // The next check tries again.
      listening = undefined;
      throw error;
    });
    const { port } = (await listening).address() as AddressInfo;
    const { authority, tls } = settings;
    const client = new Client(`127.0.0.1:${port}`, new OpenConnection(socket, tls !== undefined), {
      ...OPTIONS,
      'grpc.default_authority': authority,
    });
    attempt.atEnd(() => client.close());
    await callCheck(client, method, socket, settings.service);
  };
  return {
    check,
    close: () =>
      void listening?.then(
        server => server.close(),
        () => undefined,
      ),
  };
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(socket => socket.on('error', () => undefined));
    server.unref();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

/** Credentials that replace the connection which the library has dialled by one that is open. */
class OpenConnection extends ChannelCredentials {
  readonly #socket: Socket;
  readonly #isSecure: boolean;

  constructor(socket: Socket, isSecure: boolean) {
    super();
    this.#socket = socket;
    this.#isSecure = isSecure;
  }

  override _isSecure(): boolean {
    return this.#isSecure;
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this;
  }

  override _createSecureConnector(): experimental.SecureConnector {
    return {
      waitForReady: () => Promise.resolve(),
      connect: dialled => {
        // A reset leaves no port in TIME_WAIT.
        dialled.resetAndDestroy();
        return Promise.resolve({ socket: this.#socket, secure: this.#isSecure });
      },
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy: () => undefined,
    };
  }
}

type Method = NonNullable<(typeof healthService)[string]>;
type HealthResponse = { readonly status: string | number };

function callCheck(
  client: Client,
  { path, requestSerialize, responseDeserialize }: Method,
  socket: Socket,
  service: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let closed: CheckError | undefined;
    socket.once('error', error => (closed ??= checkErrorOf(error)));
    socket.once('close', () => (closed ??= new CheckError('unanswered', 'connection closed', 'ECONNRESET')));
    client.makeUnaryRequest<object, HealthResponse>(
      path,
      requestSerialize,
      bytes => responseDeserialize(bytes) as HealthResponse,
      { service },
      (error, response) => {
        if (error) reject(errorOf(error, service, closed));
        else if (response?.status === 'SERVING') resolve();
        else
          reject(new CheckError('answered', `health status ${response?.status}`, `GRPC_${response?.status}`));
      },
    );
  });
}

function errorOf(
  { code, details }: ServiceError,
  service: string,
  closed: CheckError | undefined,
): CheckError {
  const cause = `GRPC_${status[code]}`;
  if (code === status.NOT_FOUND) {
    const text = service === '' ? 'server has no health' : `service ${service} is unknown`;
    return new CheckError('answered', text, `${cause}_${service}`);
  }
  if (code === status.UNIMPLEMENTED)
    return new CheckError('answered', 'server has no gRPC health service', cause);
  if (/protocol error/i.test(details)) return new CheckError('answered', 'response is not gRPC', cause);
  return closed ?? new CheckError('unanswered', `gRPC status ${status[code]}`, cause);
}
