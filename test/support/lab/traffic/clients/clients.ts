import type { ClientName } from '../matrix/cells.ts';
import { bytesClient } from './bytes.ts';
import type { Client, Target } from './client.ts';
import { datagramClient } from './datagrams.ts';
import { grpcClient } from './grpc.ts';
import { http1Client } from './http1.ts';
import { http2Client } from './http2.ts';

/** The client of a name; the CA is for clients that use TLS with the service itself. */
export function clientOf(name: ClientName, target: Target, authority: Buffer): Client {
  switch (name) {
    case 'HTTP/1.1':
      return http1Client(target);
    case 'HTTP/2':
      return http2Client(target);
    case 'gRPC':
      return grpcClient(target);
    case 'bytes':
      return bytesClient(target);
    case 'TLS':
      return bytesClient(target, authority);
    case 'datagrams':
      return datagramClient(target);
  }
}
