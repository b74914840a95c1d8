import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import type { TransportSocketMatch, TransportSocket } from '../../traffic/settings/envoy-cluster-settings.ts';
import { setField, updateField, bytesField, bytesOf, isMessage, concat, textOf } from '../wire.ts';
import { encode, pack, typeUrlOf } from '../encode.ts';
import { Cluster_TransportSocketMatchSchema as MatchSchema } from '../proto/envoy/config/cluster/v3_pb.ts';
import { TransportSocketSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { Http11ProxyUpstreamTransportSchema as TunnelSchema } from '../proto/envoy/extensions/transport_sockets/http_11_proxy/v3_pb.ts';
import { ProxyProtocolUpstreamTransportSchema as ProxyProtocolSchema } from '../proto/envoy/extensions/transport_sockets/proxy_protocol/v3_pb.ts';
import { RawBufferSchema } from '../proto/envoy/extensions/transport_sockets/raw_buffer/v3_pb.ts';
import { UpstreamTlsContextSchema } from '../proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';
import { CLOSED_TLS, tlsContext } from './upstream-tls.ts';
import type { TlsContext } from './upstream-tls.ts';

/** The metadata key by which an endpoint selects a transport socket match. */
export const MATCH_KEY = 'mesh';

/** Distinguishes our socket matches from those of Envoy Gateway. */
const MATCH_PREFIX = 'mesh/';

/** A transport socket that sends a PROXY protocol header, as a BackendTrafficPolicy configures it, around another one. */
type ProxyProtocolSocket = Uint8Array;

/** Encodes a socket that connects through the proxy of the endpoint, or directly if the endpoint has none. */
export function encodeTransportSocket(
  socket: TransportSocket,
  proxyProtocol?: ProxyProtocolSocket,
): Uint8Array {
  const upstream = upstreamSocket(socket);
  const inner = proxyProtocol ? wrapInProxyProtocol(proxyProtocol, upstream) : upstream;
  const tunnel = {
    typeUrl: typeUrlOf(TunnelSchema),
    value: bytesField(TunnelSchema.field.transportSocket.number, inner),
  };
  const name = 'envoy.transport_sockets.http_11_proxy';
  return encode(TransportSocketSchema, { name, configType: { case: 'typedConfig', value: tunnel } });
}

/** Encodes a transport socket match, which endpoints select by its name. */
export function encodeSocketMatch(
  { name, socket }: TransportSocketMatch,
  proxyProtocol?: ProxyProtocolSocket,
): Uint8Array {
  return encodeMatch(name, encodeTransportSocket(socket, proxyProtocol));
}

/** Encodes the match of another backend: with the socket that Envoy Gateway made for it, else one without TLS. */
export function encodeOtherSocketMatch(
  name: string,
  made: Uint8Array | undefined,
  proxyProtocol?: ProxyProtocolSocket,
): Uint8Array {
  const socket = made && bytesOf(made, MatchSchema.field.transportSocket.number);
  return encodeMatch(name, socket ?? encodeTransportSocket({ is: 'clear' }, proxyProtocol));
}

function encodeMatch(name: string, socket: Uint8Array): Uint8Array {
  const head = encode(MatchSchema, { name: MATCH_PREFIX + name, match: { [MATCH_KEY]: name } });
  return concat([head, bytesField(MatchSchema.field.transportSocket.number, socket)]);
}

/** The name of a transport socket match. */
export function nameOfMatch(match: Uint8Array): string | undefined {
  return textOf(match, MatchSchema.field.name.number);
}

/** Whether we put a transport socket match into the cluster. */
export function isOurMatch(match: Uint8Array): boolean {
  return nameOfMatch(match)?.startsWith(MATCH_PREFIX) ?? false;
}

/** Returns the PROXY protocol socket of a cluster: the socket that Envoy Gateway made, or the one that our socket wraps. */
export function proxyProtocolOf(socket: Uint8Array): ProxyProtocolSocket | undefined {
  const { typeUrl, value } = configOf(socket);
  if (typeUrl === typeUrlOf(ProxyProtocolSchema)) return isMessage(value) ? socket : undefined;
  if (typeUrl !== typeUrlOf(TunnelSchema)) return undefined;
  const inner = bytesOf(value, TunnelSchema.field.transportSocket.number);
  return inner && proxyProtocolOf(inner);
}

function configOf(socket: Uint8Array): { readonly typeUrl: string | undefined; readonly value: Uint8Array } {
  const config = bytesOf(socket, TransportSocketSchema.field.typedConfig.number) ?? new Uint8Array();
  const value = bytesOf(config, AnySchema.field.value.number) ?? new Uint8Array();
  return { typeUrl: textOf(config, AnySchema.field.typeUrl.number), value };
}

/** Sets the inner socket of a PROXY protocol socket. */
function wrapInProxyProtocol(proxyProtocol: ProxyProtocolSocket, inner: Uint8Array): Uint8Array {
  return updateField(proxyProtocol, TransportSocketSchema.field.typedConfig.number, config =>
    updateField(config, AnySchema.field.value.number, value =>
      setField(value, ProxyProtocolSchema.field.transportSocket.number, inner),
    ),
  );
}

function upstreamSocket(socket: TransportSocket): Uint8Array {
  switch (socket.is) {
    case 'clear':
      return typedSocket('envoy.transport_sockets.raw_buffer', RawBufferSchema, {});
    case 'closed':
      return tlsSocket(CLOSED_TLS);
    case 'tls':
      return tlsSocket(tlsContext(socket.tls));
  }
}

function tlsSocket(context: TlsContext): Uint8Array {
  return typedSocket('envoy.transport_sockets.tls', UpstreamTlsContextSchema, context);
}

function typedSocket<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  config: MessageInitShape<Desc>,
): Uint8Array {
  const value = pack(schema, config);
  return encode(TransportSocketSchema, { name, configType: { case: 'typedConfig', value } });
}
