import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import type { TransportSocketMatch, TransportSocket } from '../../traffic/envoy-cluster-settings.ts';
import { setField, updateField, bytesField, bytesOf, isMessage, concat, textOf } from '../wire.ts';
import { encode, pack, typeUrlOf } from '../encode.ts';
import { Cluster_TransportSocketMatchSchema as MatchSchema } from '../proto/envoy/config/cluster/v3_pb.ts';
import { TransportSocketSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { Http11ProxyUpstreamTransportSchema as TunnelSchema } from '../proto/envoy/extensions/transport_sockets/http_11_proxy/v3_pb.ts';
import { ProxyProtocolUpstreamTransportSchema as PreambleSchema } from '../proto/envoy/extensions/transport_sockets/proxy_protocol/v3_pb.ts';
import { RawBufferSchema } from '../proto/envoy/extensions/transport_sockets/raw_buffer/v3_pb.ts';
import { UpstreamTlsContextSchema } from '../proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';
import { CLOSED, tlsContext } from './upstream-tls.ts';
import type { TlsContext } from './upstream-tls.ts';

/** The key by which an endpoint names its socket among those of its cluster. */
export const MATCH_KEY = 'mesh';

/** By this our sockets in a cluster are told from those of Envoy Gateway. */
const MATCH_PREFIX = 'mesh/';

/** A socket that first sends a PROXY protocol header, as a policy asks for it; another one is to be put into it. */
export type Preamble = Uint8Array;

/** A socket that speaks as it is needed: through the proxy that an endpoint names, directly where it names none. */
export function socketOf(needs: TransportSocket, preamble?: Preamble): Uint8Array {
  const spoken = spokenSocket(needs);
  const inner = preamble ? withInside(preamble, spoken) : spoken;
  const tunnel = {
    typeUrl: typeUrlOf(TunnelSchema),
    value: bytesField(TunnelSchema.field.transportSocket.number, inner),
  };
  const name = 'envoy.transport_sockets.http_11_proxy';
  return encode(TransportSocketSchema, { name, configType: { case: 'typedConfig', value: tunnel } });
}

/** One of several sockets of a cluster, which its endpoints choose by its name. */
export function matchOf({ name, socket }: TransportSocketMatch, preamble?: Preamble): Uint8Array {
  return namedMatch(name, socketOf(socket, preamble));
}

/** The same for another backend: the socket of the match that Envoy Gateway has made for it, else one without TLS. */
export function otherMatchOf(name: string, made: Uint8Array | undefined, preamble?: Preamble): Uint8Array {
  const socket = made && bytesOf(made, MatchSchema.field.transportSocket.number);
  return namedMatch(name, socket ?? socketOf({ is: 'clear' }, preamble));
}

function namedMatch(name: string, socket: Uint8Array): Uint8Array {
  const head = encode(MatchSchema, { name: MATCH_PREFIX + name, match: { [MATCH_KEY]: name } });
  return concat([head, bytesField(MatchSchema.field.transportSocket.number, socket)]);
}

/** The name of one of the sockets of a cluster. */
export function nameOfMatch(match: Uint8Array): string | undefined {
  return textOf(match, MatchSchema.field.name.number);
}

/** Whether one of the sockets of a cluster was put there by us. */
export function isOurMatch(match: Uint8Array): boolean {
  return nameOfMatch(match)?.startsWith(MATCH_PREFIX) ?? false;
}

/** What a socket sends first, where it does so: as Envoy Gateway made it, or inside of ours. */
export function preambleOf(socket: Uint8Array): Preamble | undefined {
  const { typeUrl, value } = configOf(socket);
  if (typeUrl === typeUrlOf(PreambleSchema)) return isMessage(value) ? socket : undefined;
  if (typeUrl !== typeUrlOf(TunnelSchema)) return undefined;
  const inner = bytesOf(value, TunnelSchema.field.transportSocket.number);
  return inner && preambleOf(inner);
}

function configOf(socket: Uint8Array): { readonly typeUrl: string | undefined; readonly value: Uint8Array } {
  const config = bytesOf(socket, TransportSocketSchema.field.typedConfig.number) ?? new Uint8Array();
  const value = bytesOf(config, AnySchema.field.value.number) ?? new Uint8Array();
  return { typeUrl: textOf(config, AnySchema.field.typeUrl.number), value };
}

/** A preamble with what is spoken after it put into it, and otherwise as it was. */
function withInside(preamble: Preamble, inner: Uint8Array): Uint8Array {
  return updateField(preamble, TransportSocketSchema.field.typedConfig.number, config =>
    updateField(config, AnySchema.field.value.number, value =>
      setField(value, PreambleSchema.field.transportSocket.number, inner),
    ),
  );
}

function spokenSocket(needs: TransportSocket): Uint8Array {
  switch (needs.is) {
    case 'clear':
      return typedSocket('envoy.transport_sockets.raw_buffer', RawBufferSchema, {});
    case 'closed':
      return tlsSocket(CLOSED);
    case 'tls':
      return tlsSocket(tlsContext(needs.tls));
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
