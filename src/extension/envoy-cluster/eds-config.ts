import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationOf, encode } from '../encode.ts';
import { Cluster_EdsClusterConfigSchema } from '../proto/envoy/config/cluster/v3_pb.ts';
import { ApiConfigSource_ApiType as ApiType, ApiVersion } from '../proto/envoy/config/core/v3_pb.ts';
import type { GrpcService_GoogleGrpc_ChannelArgs_ValueSchema as ArgumentSchema } from '../proto/envoy/config/core/v3_pb.ts';

/**
 * By default gRPC waits up to half a minute before it reconnects, never notices a dead connection, rejects messages above
 * 4 MiB, which a rule of 16,000 endpoints can need, and uses the HTTP proxy of Envoy's environment.
 */
const CHANNEL_ARGUMENTS = {
  'grpc.enable_http_proxy': 0,
  'grpc.http2.max_pings_without_data': 0,
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_receive_message_length': 100_000_000,
  'grpc.max_reconnect_backoff_ms': 200,
  'grpc.min_reconnect_backoff_ms': 200,
} as const;

/** How long a new or changed cluster waits for its endpoints before it is used without any. */
const INITIAL_FETCH_TIMEOUT_MS = 60_000;

/** Encodes the EDS configuration of a cluster that gets its endpoints from the extension server at `target`. */
export function encodeEdsConfig(cluster: string, target: string): Uint8Array {
  const googleGrpc = { targetUri: target, statPrefix: 'mesh_eds', channelArgs: { args: channelArguments() } };
  return encode(Cluster_EdsClusterConfigSchema, {
    serviceName: cluster,
    edsConfig: {
      initialFetchTimeout: durationOf(INITIAL_FETCH_TIMEOUT_MS),
      resourceApiVersion: ApiVersion.V3,
      configSourceSpecifier: {
        case: 'apiConfigSource',
        value: {
          apiType: ApiType.DELTA_GRPC,
          transportApiVersion: ApiVersion.V3,
          setNodeOnFirstMessageOnly: true,
          grpcServices: [{ targetSpecifier: { case: 'googleGrpc', value: googleGrpc } }],
        },
      },
    },
  });
}

type Argument = MessageInitShape<typeof ArgumentSchema>;

function channelArguments(): Record<string, Argument> {
  const entries = Object.entries(CHANNEL_ARGUMENTS).map(([name, value]): [string, Argument] => [
    name,
    { valueSpecifier: { case: 'intValue', value: BigInt(value) } },
  ]);
  return Object.fromEntries(entries);
}
