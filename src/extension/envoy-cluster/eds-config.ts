import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationOf, encode } from '../encode.ts';
import { Cluster_EdsClusterConfigSchema } from '../proto/envoy/config/cluster/v3_pb.ts';
import { ApiConfigSource_ApiType as ApiType, ApiVersion } from '../proto/envoy/config/core/v3_pb.ts';
import type { GrpcService_GoogleGrpc_ChannelArgs_ValueSchema as ArgumentSchema } from '../proto/envoy/config/core/v3_pb.ts';

/**
 * Without these Envoy waits up to half a minute before it asks again after an outage of ours, and a pipe that has gone
 * silent is never noticed; and it takes no answer above 4 MiB, which a rule of 16,000 endpoints can need. A proxy that
 * Envoy's environment names is for others.
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

/** So long a cluster that has changed waits for its endpoints before it is used with none. */
const FIRST_FETCH_MS = 60_000;

/** Where Envoy gets the endpoints of a cluster: from us, at `target`. */
export function edsSource(cluster: string, target: string): Uint8Array {
  const googleGrpc = { targetUri: target, statPrefix: 'mesh_eds', channelArgs: { args: channelArguments() } };
  return encode(Cluster_EdsClusterConfigSchema, {
    serviceName: cluster,
    edsConfig: {
      initialFetchTimeout: durationOf(FIRST_FETCH_MS),
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
