import { fromBinary } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import type { Message } from '@bufbuild/protobuf';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { varintField } from './varint-field.ts';
import { encode, typeUrlOf } from '../../../src/extension/encode.ts';
import { ClusterSchema } from '../../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import type { Cluster } from '../../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import type { TransportSocket } from '../../../src/extension/proto/envoy/config/core/v3_pb.ts';
import { TransportSocketSchema } from '../../../src/extension/proto/envoy/config/core/v3_pb.ts';
import { Http11ProxyUpstreamTransportSchema } from '../../../src/extension/proto/envoy/extensions/transport_sockets/http_11_proxy/v3_pb.ts';
import { ProxyProtocolUpstreamTransportSchema } from '../../../src/extension/proto/envoy/extensions/transport_sockets/proxy_protocol/v3_pb.ts';
import { RawBufferSchema } from '../../../src/extension/proto/envoy/extensions/transport_sockets/raw_buffer/v3_pb.ts';
import { UpstreamTlsContextSchema } from '../../../src/extension/proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';
import type { UpstreamTlsContext } from '../../../src/extension/proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';

export const CLUSTER = 'httproute/shop/checkout/rule/0';

const text = (value: string) => Buffer.from(value);

function any(type: string, value: Uint8Array): Uint8Array {
  return concat([bytesField(1, text(`type.googleapis.com/${type}`)), bytesField(2, value)]);
}

const EMPTY = new Uint8Array();

/** Least request with locality weights, as Envoy Gateway sets it. */
const BALANCING = bytesField(
  1,
  bytesField(
    4,
    concat([
      bytesField(1, text('envoy.load_balancing_policies.least_request')),
      bytesField(
        2,
        any(
          'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest',
          bytesField(4, bytesField(2, EMPTY)),
        ),
      ),
    ]),
  ),
);

/** A cluster of Envoy Gateway before any hook, with more fields, and with some left out. */
export function gatewayCluster(
  more: readonly Uint8Array[] = [],
  { name = CLUSTER, without = [] }: { readonly name?: string; readonly without?: readonly number[] } = {},
): Uint8Array {
  const ads = concat([bytesField(3, EMPTY), varintField(6, 2)]);
  const fields: readonly (readonly [number, Uint8Array])[] = [
    [1, bytesField(1, text(name))],
    [2, varintField(2, 3)],
    [3, bytesField(3, concat([bytesField(1, ads), bytesField(2, text(name))]))],
    [4, bytesField(4, varintField(1, 10))],
    [5, bytesField(5, varintField(1, 32_768))],
    [10, bytesField(10, bytesField(1, bytesField(5, varintField(1, 1024))))],
    [17, varintField(17, 4)],
    [27, bytesField(27, EMPTY)],
    [32, varintField(32, 1)],
    [41, bytesField(41, BALANCING)],
  ];
  const kept = fields.filter(([number]) => !without.includes(number)).map(([, field]) => field);
  return concat([...kept, ...more]);
}

/** HttpProtocolOptions as an entry of a cluster. */
export function httpOptions(value: Uint8Array): Uint8Array {
  const type = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  return bytesField(36, concat([bytesField(1, text(type)), bytesField(2, any(type, value))]));
}

/** The transport socket that Envoy Gateway makes for a policy with PROXY protocol, as a field. */
export function proxyProtocol(): Uint8Array {
  const raw = { typeUrl: typeUrlOf(RawBufferSchema), value: EMPTY };
  const inner = encode(TransportSocketSchema, {
    name: 'envoy.transport_sockets.raw_buffer',
    configType: { case: 'typedConfig', value: raw },
  });
  // Version 2, and an unknown field.
  const value = concat([bytesField(1, varintField(1, 1)), bytesField(2, inner), varintField(4, 1)]);
  return bytesField(
    24,
    encode(TransportSocketSchema, {
      name: 'envoy.transport_sockets.upstream_proxy_protocol',
      configType: {
        case: 'typedConfig',
        value: { typeUrl: typeUrlOf(ProxyProtocolUpstreamTransportSchema), value },
      },
    }),
  );
}

/** Decodes a cluster. */
export function read(cluster: Uint8Array): Cluster {
  return fromBinary(ClusterSchema, cluster);
}

function open<M extends Message>(schema: GenMessage<M>, message: Any): M {
  if (message.typeUrl !== typeUrlOf(schema)) throw new Error(`${message.typeUrl} is not ${schema.typeName}`);
  return fromBinary<GenMessage<M>>(schema, message.value);
}

/** The layers of a socket, and its TLS context. */
export type Opened = { readonly layers: readonly string[]; readonly tls?: UpstreamTlsContext };

/** Decodes the layers of a socket, from the outermost in. */
export function opened(socket: TransportSocket | undefined): Opened {
  const config = socket?.configType.case === 'typedConfig' ? socket.configType.value : undefined;
  if (!socket || !config) return { layers: ['nothing'] };
  const inside = (inner: TransportSocket | undefined) => {
    const { layers, ...rest } = opened(inner);
    return { layers: [socket.name, ...layers], ...rest };
  };
  switch (config.typeUrl) {
    case typeUrlOf(Http11ProxyUpstreamTransportSchema):
      return inside(open(Http11ProxyUpstreamTransportSchema, config).transportSocket);
    case typeUrlOf(ProxyProtocolUpstreamTransportSchema):
      return inside(open(ProxyProtocolUpstreamTransportSchema, config).transportSocket);
    case typeUrlOf(UpstreamTlsContextSchema):
      return { layers: [socket.name], tls: open(UpstreamTlsContextSchema, config) };
    default:
      return { layers: [socket.name] };
  }
}
