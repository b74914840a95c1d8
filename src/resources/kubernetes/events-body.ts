import { withoutSecrets } from '../../telemetry/secrets.ts';
import type { Told } from '../events.ts';
import type { KubeRequest } from './transport.ts';

/** What an API server takes at most, in bytes. */
const [LONGEST_NOTE, LONGEST_WORD, LONGEST_NAME] = [1024, 128, 200];

/** The same as an API server takes it: bounded, without secrets and without halves of characters. */
export function fitting(told: Told): Told {
  const action = bounded(told.action, LONGEST_WORD);
  const reason = bounded(told.reason, LONGEST_WORD);
  return {
    ...told,
    reason: reason === '' ? 'Unknown' : reason,
    action: action === '' ? 'Unknown' : action,
    // Nothing of a note that is so long comes through, so that nobody looks for secrets in the rest of it.
    note: bounded(withoutSecrets(told.note.slice(0, 2 * LONGEST_NOTE)), LONGEST_NOTE),
  };
}

function bounded(text: string, mostBytes: number): string {
  const whole = text.slice(0, 2 * mostBytes).replaceAll(/\p{Surrogate}/gu, '\u{FFFD}');
  const bytes = Buffer.from(whole);
  if (bytes.length <= mostBytes && text.length <= 2 * mostBytes) return whole;
  let end = Math.min(bytes.length, mostBytes - 3);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}...`;
}

/** An event as it is written, the one that stands for all that are equal. */
export type Written = {
  readonly name: string;
  readonly told: Told;
  readonly first: Date;
  readonly last: Date;
  readonly count: number;
};

/** Who tells: the name of our part, and which process of it. */
export type Reporter = { readonly controller: string; readonly instance: string };

/** The name of a new event: that of the object, and something that no other event has. */
export function eventName({ regarding }: Told, unique: string): string {
  const name = regarding.name.toLowerCase().slice(0, LONGEST_NAME);
  return `${/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name) ? name : 'object'}.${unique}`;
}

/** Writes an event for the first time. */
export function creatingEvent(event: Written, { controller, instance }: Reporter): KubeRequest {
  const { name, told, first, count } = event;
  const { regarding, type, reason, action, note } = told;
  const value = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: namespaceOf(told) },
    eventTime: microTime(first),
    reportingController: controller,
    reportingInstance: bounded(instance, LONGEST_WORD),
    ...{ regarding, type, reason, action, note },
    ...(count > 1 ? seriesOf(event) : {}),
  };
  return { verb: 'create', path: pathOfAll(told), body: { type: 'application/json', value } };
}

/** Writes how often an event has been told by now. */
export function countingEvent(event: Written): KubeRequest {
  const path = `${pathOfAll(event.told)}/${encodeURIComponent(event.name)}`;
  return { verb: 'patch', path, body: { type: 'application/merge-patch+json', value: seriesOf(event) } };
}

function seriesOf({ count, last }: Written) {
  return { series: { count, lastObservedTime: microTime(last) } };
}

function pathOfAll(told: Told): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespaceOf(told))}/events`;
}

/** What is in no namespace has its events in the default one: no server takes them elsewhere. */
function namespaceOf({ regarding }: Told): string {
  const { namespace = '' } = regarding;
  return namespace === '' ? 'default' : namespace;
}

function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}
