import { AnySchema } from '@bufbuild/protobuf/wkt';
import { applyEdits, updateField, setField, bytesField, bytesOf, Fields, concat, textOf } from '../wire.ts';
import type { Edit } from '../wire.ts';
import { encode, typeUrlOf } from '../encode.ts';
import {
  HttpProtocolOptions_ExplicitHttpConfigSchema as ExplicitSchema,
  HttpProtocolOptionsSchema as OptionsSchema,
} from '../proto/envoy/extensions/upstreams/http/v3_pb.ts';

/** A version of HTTP that is spoken to a whole cluster. */
export type HttpVersion = 'HTTP/1.1' | 'HTTP/2';

const KEY = typeUrlOf(OptionsSchema).replace(/^.*\//, '');
const MAP_KEY = 1;
const MAP_VALUE = 2;

const { explicitHttpConfig, useDownstreamProtocolConfig, autoConfig } = OptionsSchema.field;
const CHOICES: ReadonlySet<number> = new Set(
  [explicitHttpConfig, useDownstreamProtocolConfig, autoConfig].map(({ number }) => number),
);

/** Whether an entry of a cluster's options holds those of HTTP. */
export function isHttpOptions(entry: Uint8Array): boolean {
  return textOf(entry, MAP_KEY) === KEY;
}

/** The entry that says which version of HTTP is spoken, where no policy has said anything about HTTP. */
export function newHttpOptions(version: HttpVersion): Uint8Array {
  const value = encode(AnySchema, {
    typeUrl: typeUrlOf(OptionsSchema),
    value: explicit(version, new Uint8Array()),
  });
  return concat([bytesField(MAP_KEY, Buffer.from(KEY)), bytesField(MAP_VALUE, value)]);
}

/** Whether an entry leaves the version to what TLS agrees on, which Envoy refuses where there is a socket without TLS. */
export function isLeftToTls(entry: Uint8Array): boolean {
  return choiceIn(optionsIn(entry))?.number === autoConfig.number;
}

/** An entry with the version of HTTP chosen by us; all else that a policy has set in it stays. */
export function withVersion(entry: Uint8Array, version: HttpVersion): Uint8Array {
  const { number } = AnySchema.field.value;
  const options = chosen(optionsIn(entry), version);
  return updateField(entry, MAP_VALUE, any => setField(any, number, options));
}

/** Options in which the version is chosen; what was set for that version in another kind of choice is taken over. */
function chosen(options: Uint8Array, version: HttpVersion): Uint8Array {
  const choice = choiceIn(options);
  const wanted = numberOf(version);
  if (choice?.number === explicitHttpConfig.number && lastNumber(choice.value) === wanted) return options;
  const settings = (choice && bytesOf(choice.value, wanted)) ?? new Uint8Array();
  const decided = applyEdits(
    options,
    [...CHOICES].filter(number => number !== explicitHttpConfig.number).map(dropping),
  );
  return setField(decided, explicitHttpConfig.number, bytesField(wanted, settings));
}

function dropping(number: number): Edit {
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
