import { withoutSecrets } from '../../../telemetry/secrets.ts';
import type { ObjectEvent } from '../../events.ts';
import type { KubeRequest } from '../transport/transport.ts';

/** What an API server takes at most, in bytes. */
const [MAX_NOTE, MAX_WORD, MAX_NAME] = [1024, 128, 200];

/** The same as an API server takes it: bounded, without secrets and without halves of characters. */
export function bounded(event: ObjectEvent): ObjectEvent {
  const action = cut(event.action, MAX_WORD);
  const reason = cut(event.reason, MAX_WORD);
  return {
    ...event,
    reason: reason === '' ? 'Unknown' : reason,
    action: action === '' ? 'Unknown' : action,
    // Nothing of a note that is so long comes through, so that nobody looks for secrets in the rest of it.
    note: cut(withoutSecrets(event.note.slice(0, 2 * MAX_NOTE)), MAX_NOTE),
  };
}

function cut(text: string, mostBytes: number): string {
  const whole = text.slice(0, 2 * mostBytes).replaceAll(/\p{Surrogate}/gu, '\u{FFFD}');
  const bytes = Buffer.from(whole);
  if (bytes.length <= mostBytes && text.length <= 2 * mostBytes) return whole;
  let end = Math.min(bytes.length, mostBytes - 3);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}...`;
}

/** An event as it is written, the one that stands for all equal ones. */
type Written = {
  readonly name: string;
  readonly event: ObjectEvent;
  readonly first: Date;
  readonly last: Date;
  readonly count: number;
};

/** Who reports: the name of our component, and which process of it. */
export type Reporter = { readonly controller: string; readonly instance: string };

/** The name of a new event: that of the object, and something that no other event has. */
export function eventName({ regarding }: ObjectEvent, unique: string): string {
  const name = regarding.name.toLowerCase().slice(0, MAX_NAME);
  return `${/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name) ? name : 'object'}.${unique}`;
}

/** Writes an event for the first time. */
export function createRequest(written: Written, { controller, instance }: Reporter): KubeRequest {
  const { name, event, first, count } = written;
  const { regarding, type, reason, action, note } = event;
  const value = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: namespaceOf(event) },
    eventTime: microTime(first),
    reportingController: controller,
    reportingInstance: cut(instance, MAX_WORD),
    ...{ regarding, type, reason, action, note },
    ...(count > 1 ? seriesOf(written) : {}),
  };
  return { verb: 'create', path: pathOfAll(event), body: { type: 'application/json', value } };
}

/** Writes how often an event has been recorded by now. */
export function seriesRequest(written: Written): KubeRequest {
  const path = `${pathOfAll(written.event)}/${encodeURIComponent(written.name)}`;
  return { verb: 'patch', path, body: { type: 'application/merge-patch+json', value: seriesOf(written) } };
}

function seriesOf({ count, last }: Written) {
  return { series: { count, lastObservedTime: microTime(last) } };
}

function pathOfAll(event: ObjectEvent): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespaceOf(event))}/events`;
}

/** What is in no namespace has its events in the default one: no server takes them elsewhere. */
function namespaceOf({ regarding }: ObjectEvent): string {
  const { namespace = '' } = regarding;
  return namespace === '' ? 'default' : namespace;
}

function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}
