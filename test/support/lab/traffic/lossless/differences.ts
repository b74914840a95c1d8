import { fieldsOf, textIn, valuesOf } from './wire-fields.ts';
import type { Field } from './wire-fields.ts';

/** The numbers of the fields of a Cluster that we set. */
const NAME = 1;
const EDS_CONFIG = 3;
const HEALTH_CHECKS = 8;
const CIRCUIT_BREAKERS = 10;
const TRANSPORT_SOCKET = 24;
const COMMON_LB_CONFIG = 27;
const EXTENSION_OPTIONS = 36;
const SOCKET_MATCHES = 43;

const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const EXPLICIT_VERSION = 3;
const PANIC_THRESHOLD = 1;

/**
 * The fields of a cluster that differ although they are not ours; empty if none do. Health checks and the panic
 * threshold are ours only where they were not set before, and circuit breakers only for UDP.
 */
export function foreignChanges(before: Uint8Array, after: Uint8Array): readonly string[] {
  const hadChecks = valuesOf(before, HEALTH_CHECKS).length > 0;
  const sessions = isUdp(before) ? [CIRCUIT_BREAKERS] : [];
  const checks = hadChecks ? [] : [HEALTH_CHECKS];
  const ours = [EDS_CONFIG, TRANSPORT_SOCKET, SOCKET_MATCHES, ...checks, ...sessions];
  const kept = (cluster: Uint8Array) =>
    fieldsOf(cluster)
      .filter(field => !ours.includes(field.number) && !isSpecial(field))
      .map(hex);
  return [
    ...difference(kept(before), kept(after)),
    ...difference(balancing(before, before), balancing(after, before)),
    ...difference(httpOptions(before, versionsIn(after)), httpOptions(after, versionsIn(after))),
  ];
}

function isUdp(cluster: Uint8Array): boolean {
  return textIn(cluster, NAME).startsWith('udproute/');
}

function isSpecial({ number, value }: Field): boolean {
  return number === COMMON_LB_CONFIG || (number === EXTENSION_OPTIONS && textIn(value, 1) === HTTP_OPTIONS);
}

/** The settings of load balancing, without the panic threshold where it is ours. */
function balancing(cluster: Uint8Array, original: Uint8Array): readonly string[] {
  const inside = (of: Uint8Array) => valuesOf(of, COMMON_LB_CONFIG).flatMap(fieldsOf);
  const hadThreshold = inside(original).some(({ number }) => number === PANIC_THRESHOLD);
  return inside(cluster)
    .filter(({ number }) => hadThreshold || number !== PANIC_THRESHOLD)
    .map(hex);
}

/** The settings of HTTP other than its version, and those of the versions that remain. */
function httpOptions(cluster: Uint8Array, versions: readonly number[]): readonly string[] {
  const options = optionsIn(cluster);
  const explicit = options
    .flatMap(one => valuesOf(one, EXPLICIT_VERSION))
    .flatMap(fieldsOf)
    .filter(({ number }) => versions.includes(number));
  const rest = options.flatMap(fieldsOf).filter(({ number }) => number !== EXPLICIT_VERSION);
  return [...rest, ...explicit.flatMap(({ value }) => fieldsOf(value))].map(hex);
}

function versionsIn(cluster: Uint8Array): readonly number[] {
  const explicit = optionsIn(cluster).flatMap(options => valuesOf(options, EXPLICIT_VERSION));
  return explicit.flatMap(fieldsOf).map(({ number }) => number);
}

/** The HttpProtocolOptions: a value, packed as Any, in an entry of a map. */
function optionsIn(cluster: Uint8Array): readonly Buffer[] {
  return valuesOf(cluster, EXTENSION_OPTIONS)
    .filter(entry => textIn(entry, 1) === HTTP_OPTIONS)
    .flatMap(entry => valuesOf(entry, 2))
    .flatMap(any => valuesOf(any, 2));
}

function hex({ number, raw }: Field): string {
  return `${number}: ${raw.toString('hex').slice(0, 200)}`;
}

function difference(before: readonly string[], after: readonly string[]): readonly string[] {
  return [
    ...before.filter(field => !after.includes(field)).map(field => `lost ${field}`),
    ...after.filter(field => !before.includes(field)).map(field => `new ${field}`),
  ];
}
