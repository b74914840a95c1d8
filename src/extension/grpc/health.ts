import { create, toBinary } from '@bufbuild/protobuf';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Statuses,
  HealthCheckResponseSchema,
} from '../proto/grpc/health/v1_pb.ts';
import type { Methods, ServerStream, StreamListener, Streaming, Unary } from './method.ts';
import { readSmallRequest } from './small-request.ts';
import { GrpcError } from './status.ts';

/** Whether calls are answered. */
type ServingStatus = 'SERVING' | 'NOT_SERVING';

/** The health that callers see, of the server (the empty name) and of each service alike. */
export interface Health {
  /** Check and Watch of grpc.health.v1.Health. */
  readonly methods: Methods;
  /** Tells all who watch. */
  set(status: ServingStatus): void;
}

/** Begins as NOT_SERVING; services are named as in `grpc.health.v1.Health`. */
export function createHealth(services: readonly string[]): Health {
  const known = new Set(['', ...services]);
  const watchers = new Set<() => void>();
  let serving: ServingStatus = 'NOT_SERVING';
  const statusOf = (service: string) => (known.has(service) ? serving : 'SERVICE_UNKNOWN');
  const check = (request: Uint8Array): Uint8Array => {
    const status = statusOf(serviceIn(request));
    if (status === 'SERVICE_UNKNOWN') throw new GrpcError('NOT_FOUND', 'there is no such service');
    return answerOf(status);
  };
  return {
    methods: new Map<string, Unary | Streaming>([
      ['/grpc.health.v1.Health/Check', { is: 'unary', call: check }],
      [
        '/grpc.health.v1.Health/Watch',
        { is: 'streaming', open: stream => watch(stream, statusOf, watchers) },
      ],
    ]),
    set: status => {
      serving = status;
      for (const tell of watchers) tell();
    },
  };
}

type StatusName = ServingStatus | 'SERVICE_UNKNOWN';

/** Sends the status at once, and then whenever it is another than the caller has been told. */
function watch(
  stream: ServerStream,
  statusOf: (service: string) => StatusName,
  watchers: Set<() => void>,
): StreamListener {
  let service: string | undefined;
  let told: StatusName | undefined;
  let isFull = false;
  const tell = (): void => {
    if (service === undefined || isFull) return;
    const status = statusOf(service);
    if (status === told) return;
    told = status;
    isFull = !stream.send(answerOf(status));
  };
  watchers.add(tell);
  return {
    message: request => {
      if (service !== undefined) throw new GrpcError('INTERNAL', 'Watch has one request, not more');
      service = serviceIn(request);
      tell();
    },
    finished: () => {
      if (service === undefined) throw new GrpcError('INTERNAL', 'Watch has one request, not none');
    },
    drained: () => {
      isFull = false;
      tell();
    },
    closed: () => watchers.delete(tell),
  };
}

function serviceIn(request: Uint8Array): string {
  return readSmallRequest(HealthCheckRequestSchema, request).service;
}

function answerOf(status: StatusName): Uint8Array {
  return toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: Statuses[status] }));
}
