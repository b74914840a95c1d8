import { declaredNameOf, otherNameOf } from '../api/names.ts';
import { isEqual, isRecord } from '../api/json.ts';
import { kindOfPart, RENAMED_ROUTES, textOf } from './generated-part.ts';
import type { Phase } from './handovers.ts';

/** What a part is to say next. */
export type NextText = {
  readonly text: string;
  /** The fields that Envoy Gateway then still has although they are gone. */
  readonly kept?: readonly string[];
  /** What begins with it. */
  readonly enter?: 'both' | 'rest';
};

/*
 * Envoy Gateway merges an object that it reads into the one that it has, so that it keeps what was removed, outside of
 * lists. What is done about it, by kind:
 *
 *   HTTPRoute, GRPCRoute          It gets another name, and back at the next time. For a while both are there, so that
 *                                 requests go the old way until Envoy is ready for the new one. Policies that name the
 *                                 route name both (generated-part.ts).
 *   a policy, a grant             Another name each time, in the same part: one goes and the other comes at the same
 *                                 moment. Nothing names these.
 *   Secret, ConfigMap             The keys that are gone are null, which removes or empties them.
 *   MeshEndpoints, MeshBinding    Nothing: what they say we know ourselves.
 *   others                        Nothing: too much names them. The user is told.
 */

/** The next text of a part, by what it says now and what it should say. */
export function nextText(part: string, now: string, wanted: string, phase: Phase): NextText {
  const [[first, second], [plain]] = [readAll(now), readAll(wanted)];
  const kind = kindOfPart(part);
  if (!first || !plain || OWN.includes(kind)) return { text: wanted };
  const { declared, nth } = declaredNameOf(first.metadata.name);
  if (declared !== plain.metadata.name) return { text: wanted };
  if (WITH_DATA.includes(kind)) return { text: textOf(withoutKeys(first, plain)) };
  if (second && phase === 'over') return { text: textOf(first), enter: 'rest' };
  const lost = lostFields({ ...first, metadata: {} }, { ...plain, metadata: {} }).slice(0, MOST_NAMED);
  const same = textNamed(plain, nth) ?? wanted;
  if (lost.length === 0) return second ? both(same, textNamed(plain, 1 - nth), phase) : { text: same };
  if (POLICIES.includes(kind)) return orKept(textNamed(plain, nth + 1), same, lost);
  if (!RENAMED_ROUTES.includes(kind)) return { text: same, kept: lost };
  // What is removed while one name follows the other is removed after that.
  if (second || phase !== 'free') return both(now, undefined, second ? phase : 'rest');
  const other = textNamed(plain, 1 - nth);
  return other === undefined ? { text: same, kept: lost } : both(other, same, phase);
}

function orKept(text: string | undefined, same: string, lost: readonly string[]): NextText {
  return text === undefined ? { text: same, kept: lost } : { text };
}

/** One object under two names, and the time for that begins if it has not. */
function both(text: string, other: string | undefined, phase: Phase): NextText {
  const whole = other === undefined ? text : `${text}${BETWEEN}${other}`;
  return phase === 'free' ? { text: whole, enter: 'both' } : { text: whole };
}

const BETWEEN = '---\n';

const OWN: readonly string[] = ['MeshEndpoints', 'MeshBinding'];

const WITH_DATA: readonly string[] = ['Secret', 'ConfigMap'];

const POLICIES: readonly string[] = [
  'BackendTLSPolicy',
  'ReferenceGrant',
  'EnvoyPatchPolicy',
  'ClientTrafficPolicy',
  'BackendTrafficPolicy',
  'SecurityPolicy',
  'EnvoyExtensionPolicy',
];

type Named = {
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string };
  readonly [field: string]: unknown;
};

/** The objects of a text of ours; none where somebody else has written into it. */
function readAll(text: string): readonly Named[] {
  try {
    const all = text.split(`\n${BETWEEN}`).map((one): unknown => JSON.parse(one));
    return all.every(isNamed) ? all : [];
  } catch {
    return [];
  }
}

function isNamed(value: unknown): value is Named {
  return isRecord(value) && isRecord(value['metadata']) && typeof value['metadata']['name'] === 'string';
}

function textNamed(object: Named, nth: number): string | undefined {
  const { metadata } = object;
  const name = otherNameOf(metadata.name, nth);
  return name === undefined ? undefined : textOf({ ...object, metadata: { ...metadata, name } });
}

function withoutKeys(before: Named, plain: Named): Named {
  const all = (field: string): object => {
    const keys = isRecord(before[field]) ? Object.keys(before[field]) : [];
    const gone = Object.fromEntries(keys.map(key => [key, null]));
    const now = isRecord(plain[field]) ? plain[field] : {};
    return keys.length === 0 ? {} : { [field]: { ...gone, ...now } };
  };
  return { ...plain, ...all('data'), ...all('stringData') };
}

/** More are not named. */
const MOST_NAMED = 10;

/** The fields of an object that its next version lacks; what is in lists Envoy Gateway replaces. */
function lostFields(before: unknown, after: unknown, path = ''): readonly string[] {
  if (!isRecord(before) || !isRecord(after) || isEqual(before, after)) return [];
  return Object.entries(before).flatMap(([name, value]) => {
    const inner = path === '' ? name : `${path}.${name}`;
    return Object.hasOwn(after, name) ? lostFields(value, after[name], inner) : [inner];
  });
}
