import { applyEdits, bytesField, concat, Fields, isMessage, messageOf, valuesOf, varint } from '../wire.ts';
import type { Edit } from '../wire.ts';

/** The numbers of the fields of Cluster, CircuitBreakers, Thresholds and UInt32Value. */
const CIRCUIT_BREAKERS = 10;
const THRESHOLDS = 1;
const [PRIORITY, MAX_CONNECTIONS] = [1, 2];
const VALUE = 1;

/** More than the relays of two mesh pods take, and fewer than the ports from which an Envoy can send to one relay. */
const MAX_SESSIONS = 16_384;

/**
 * Raises the number of UDP sessions of a cluster, which Envoy counts as connections, from its default of 1,024: Envoy
 * Gateway has no setting for it. A number that is set is kept.
 */
export function udpSessions(cluster: Uint8Array): Edit | undefined {
  const breakers = messageOf(cluster, CIRCUIT_BREAKERS) ?? new Uint8Array();
  const [thresholds = new Uint8Array()] = valuesOf(breakers, THRESHOLDS, 1);
  const isSet = hasField(thresholds, PRIORITY) || hasField(thresholds, MAX_CONNECTIONS);
  if (isSet || !isMessage(breakers) || !isMessage(thresholds)) return undefined;
  const max = Uint8Array.from([...varint(VALUE * 8), ...varint(MAX_SESSIONS)]);
  const raised = bytesField(THRESHOLDS, concat([thresholds, bytesField(MAX_CONNECTIONS, max)]));
  const isFirst = ({ byteOffset }: Uint8Array) => byteOffset === thresholds.byteOffset;
  const edit = { number: THRESHOLDS, replaces: isFirst, fields: [raised] };
  return {
    number: CIRCUIT_BREAKERS,
    replaces: () => true,
    fields: [bytesField(CIRCUIT_BREAKERS, applyEdits(breakers, [edit]))],
  };
}

function hasField(message: Uint8Array, number: number): boolean {
  const fields = new Fields(message);
  while (fields.next()) if (fields.number === number) return true;
  return false;
}
