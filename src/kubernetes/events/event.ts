import { withoutSecrets } from '../../telemetry/secrets.ts';
import type { ObjectEvent } from '../../store/resources.ts';
import type { KubeRequest } from '../transport/transport.ts';

/** The limits of an API server, in bytes. */
const [MAX_NOTE, MAX_WORD, MAX_NAME] = [1024, 128, 200];

/** The event within the limits of an API server, with secrets redacted. */
export function bounded(event: ObjectEvent): ObjectEvent {
  const action = cut(event.action, MAX_WORD);
  const reason = cut(event.reason, MAX_WORD);
  return {
    ...event,
    reason: reason === '' ? 'Unknown' : reason,
    action: action === '' ? 'Unknown' : action,
    // Cut first, so that only what is sent is searched for secrets.
    note: cut(withoutSecrets(event.note.slice(0, 2 * MAX_NOTE)), MAX_NOTE),
  };
}

function cut(text: string, maxBytes: number): string {
  const whole = text.slice(0, 2 * maxBytes).replaceAll(/\p{Surrogate}/gu, '\u{FFFD}');
  const bytes = Buffer.from(whole);
  if (bytes.length <= maxBytes && text.length <= 2 * maxBytes) return whole;
  let end = Math.min(bytes.length, maxBytes - 3);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}...`;
}

/** The series of equal events, which is one object. */
type Written = {
  readonly name: string;
  readonly event: ObjectEvent;
  readonly first: Date;
  readonly last: Date;
  readonly count: number;
};

/** The component that reports, and its process. */
export type Reporter = { readonly controller: string; readonly instance: string };

/** The name of a new event: that of the object with a unique suffix, as in client-go. */
export function eventName({ regarding }: ObjectEvent, unique: string): string {
  const name = regarding.name.toLowerCase().slice(0, MAX_NAME);
  return `${/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name) ? name : 'object'}.${unique}`;
}

/** Creates an event. */
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
    regarding,
    type,
    reason,
    action,
    note,
    ...(count > 1 ? seriesOf(written) : {}),
  };
  return { verb: 'create', path: pathOfAll(event), body: { type: 'application/json', value } };
}

/** Updates the count of an event. */
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

/** Events about cluster-scoped objects are in the default namespace: an API server refuses any other. */
function namespaceOf({ regarding }: ObjectEvent): string {
  const { namespace = '' } = regarding;
  return namespace === '' ? 'default' : namespace;
}

function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}
