import { AnySchema } from '@bufbuild/protobuf/wkt';
import { applyEdits, updateField, setField, bytesField, bytesOf, Fields, concat, textOf } from '../wire.ts';
import type { Edit } from '../wire.ts';
import { encode, typeUrlOf } from '../encode.ts';
import {
  HttpProtocolOptions_ExplicitHttpConfigSchema as ExplicitSchema,
  HttpProtocolOptionsSchema as OptionsSchema,
} from '../proto/envoy/extensions/upstreams/http/v3_pb.ts';

/** The HTTP version of a cluster. */
export type HttpVersion = 'HTTP/1.1' | 'HTTP/2';

const KEY = typeUrlOf(OptionsSchema).replace(/^.*\//, '');
const MAP_KEY = 1;
const MAP_VALUE = 2;

const { explicitHttpConfig, useDownstreamProtocolConfig, autoConfig } = OptionsSchema.field;
const CHOICES: ReadonlySet<number> = new Set(
  [explicitHttpConfig, useDownstreamProtocolConfig, autoConfig].map(({ number }) => number),
);

/** Whether an entry of `typed_extension_protocol_options` holds HttpProtocolOptions. */
export function isHttpOptions(entry: Uint8Array): boolean {
  return textOf(entry, MAP_KEY) === KEY;
}

/** Encodes the entry for a cluster without HttpProtocolOptions. */
export function encodeHttpOptions(version: HttpVersion): Uint8Array {
  const value = encode(AnySchema, {
    typeUrl: typeUrlOf(OptionsSchema),
    value: explicit(version, new Uint8Array()),
  });
  return concat([bytesField(MAP_KEY, Buffer.from(KEY)), bytesField(MAP_VALUE, value)]);
}

/** Whether the version is negotiated by ALPN, which Envoy rejects for a cluster with a socket without TLS. */
export function isAutoHttp(entry: Uint8Array): boolean {
  return choiceIn(optionsIn(entry))?.number === autoConfig.number;
}

/** Sets the HTTP version of an entry; its other options are kept. */
export function withHttpVersion(entry: Uint8Array, version: HttpVersion): Uint8Array {
  const { number } = AnySchema.field.value;
  const options = withExplicitVersion(optionsIn(entry), version);
  return updateField(entry, MAP_VALUE, any => setField(any, number, options));
}

/** Sets `explicit_http_config`; the settings of that version in another choice of the oneof are taken over. */
function withExplicitVersion(options: Uint8Array, version: HttpVersion): Uint8Array {
  const choice = choiceIn(options);
  const number = numberOf(version);
  if (choice?.number === explicitHttpConfig.number && lastNumber(choice.value) === number) return options;
  const settings = (choice && bytesOf(choice.value, number)) ?? new Uint8Array();
  const others = applyEdits(
    options,
    [...CHOICES].filter(each => each !== explicitHttpConfig.number).map(removal),
  );
  return setField(others, explicitHttpConfig.number, bytesField(number, settings));
}

function removal(number: number): Edit {
  return { number, replaces: () => true, fields: [] };
}

function optionsIn(entry: Uint8Array): Uint8Array {
  const any = bytesOf(entry, MAP_VALUE);
  return (any && bytesOf(any, AnySchema.field.value.number)) ?? new Uint8Array();
}

function explicit(version: HttpVersion, settings: Uint8Array): Uint8Array {
  return bytesField(explicitHttpConfig.number, bytesField(numberOf(version), settings));
}

function numberOf(version: HttpVersion): number {
  const { httpProtocolOptions, http2ProtocolOptions } = ExplicitSchema.field;
  return (version === 'HTTP/2' ? http2ProtocolOptions : httpProtocolOptions).number;
}

type Choice = { readonly number: number; readonly value: Uint8Array };

function choiceIn(options: Uint8Array): Choice | undefined {
  const fields = new Fields(options);
  let found: Choice | undefined;
  while (fields.next()) {
    const { number, valueStart, end } = fields;
    if (CHOICES.has(number)) found = { number, value: options.subarray(valueStart, end) };
  }
  return found;
}

function lastNumber(message: Uint8Array): number | undefined {
  const fields = new Fields(message);
  let last: number | undefined;
  while (fields.next()) last = fields.number;
  return last;
}
