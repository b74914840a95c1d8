import { isEqual } from '../../api/equal.ts';
import { fieldsOf } from './raw-object.ts';
import type { Fields } from './raw-object.ts';
import { failedFor, seenIn } from './write-ports.ts';
import type { WritePorts } from './write-ports.ts';
import { applying } from './write-request.ts';

/**
 * Applies what we say. An API server takes an object inside of a kind of ours that loses all of its fields for null,
 * and refuses it: such a one is left out first, and then said anew.
 */
export async function applyWords(ports: WritePorts, path: string, words: Fields): Promise<unknown> {
  try {
    return await ports.ask(applying(path, words));
  } catch (failure) {
    const fuller = withoutEmpty(words) as Fields;
    if (!failedFor(failure, 'Invalid') || isEqual(fuller, words)) throw failure;
    const { version } = seenIn(await ports.ask(applying(path, fuller)));
    return await ports.ask(applying(path, over(words, version)));
  }
}

/** The same words over another version, if they are said over one at all. */
function over(words: Fields, resourceVersion: string): Fields {
  const metadata = fieldsOf(words['metadata']);
  if (metadata?.['resourceVersion'] === undefined) return words;
  return { ...words, metadata: { ...metadata, resourceVersion } };
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  const fields = fieldsOf(value);
  if (!fields) return value;
  const entries = Object.entries(fields).map(([name, inner]) => [name, withoutEmpty(inner)] as const);
  return Object.fromEntries(entries.filter(([, inner]) => !isEmpty(inner)));
}

function isEmpty(value: unknown): boolean {
  const fields = fieldsOf(value);
  return fields !== undefined && Object.keys(fields).length === 0;
}
