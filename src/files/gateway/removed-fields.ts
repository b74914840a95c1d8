import { declaredNameOf, otherNameOf } from '../../api/names.ts';
import { isEqual, isRecord } from '../../api/json.ts';
import { kindOfPart, RENAMED_ROUTES, textOf } from './part.ts';
import type { Phase } from './route-renames.ts';

/** The text to write next for a part. */
export type NextText = {
  readonly text: string;
  /** Removed fields that Envoy Gateway keeps. */
  readonly kept?: readonly string[];
  /** The phase of a rename that begins with this text. */
  readonly enter?: 'both' | 'cooldown';
};

/*
 * Envoy Gateway merges an object that it reads into the one that it has, so it keeps removed fields, except in lists.
 * By kind:
 *
 *   HTTPRoute, GRPCRoute          Gets another name, and its own again at the next removal. Both exist for some seconds,
 *                                 so that requests take the old route until Envoy is ready for the new one. Policies
 *                                 target both names (part.ts).
 *   a policy, a grant             Another name each time, in the same part, so that both change at the same moment.
 *                                 Nothing refers to these by name.
 *   Secret, ConfigMap             Removed keys are null, which removes or empties them.
 *   MeshEndpoints, MeshBinding    Nothing: mesh-gateway itself has their content.
 *   others                        Nothing: other objects refer to them by name. The kept fields are logged.
 */

/** The text to write next for a part, from its current and its desired text. */
export function nextText(part: string, now: string, desired: string, phase: Phase): NextText {
  const [[first, second], [plain]] = [readAll(now), readAll(desired)];
  const kind = kindOfPart(part);
  if (!first || !plain || OWN.includes(kind)) return { text: desired };
  const { declared, nth } = declaredNameOf(first.metadata.name);
  if (declared !== plain.metadata.name) return { text: desired };
  if (WITH_DATA.includes(kind)) return { text: textOf(withoutKeys(first, plain)) };
  if (second && phase === 'retire') return { text: textOf(first), enter: 'cooldown' };
  const lost = lostFields({ ...first, metadata: {} }, { ...plain, metadata: {} }).slice(0, MAX_FIELDS);
  const same = textNamed(plain, nth) ?? desired;
  if (lost.length === 0) return second ? both(same, textNamed(plain, 1 - nth), phase) : { text: same };
  if (POLICIES.includes(kind)) return orKept(textNamed(plain, nth + 1), same, lost);
  if (!RENAMED_ROUTES.includes(kind)) return { text: same, kept: lost };
  // A field that is removed during a rename is handled after it.
  if (second || phase !== 'idle') return both(now, undefined, second ? phase : 'cooldown');
  const other = textNamed(plain, 1 - nth);
  return other === undefined ? { text: same, kept: lost } : both(other, same, phase);
}

function orKept(text: string | undefined, same: string, lost: readonly string[]): NextText {
  return text === undefined ? { text: same, kept: lost } : { text };
}

/** The object under two names; enters phase `both` unless it is in it. */
function both(text: string, other: string | undefined, phase: Phase): NextText {
  const whole = other === undefined ? text : `${text}${BETWEEN}${other}`;
  return phase === 'idle' ? { text: whole, enter: 'both' } : { text: whole };
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

/** The objects of a generated text; none if it was edited. */
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
    const removed = Object.fromEntries(keys.map(key => [key, null]));
    const now = isRecord(plain[field]) ? plain[field] : {};
    return keys.length === 0 ? {} : { [field]: { ...removed, ...now } };
  };
  return { ...plain, ...all('data'), ...all('stringData') };
}

/** The maximum number of fields in a log line. */
const MAX_FIELDS = 10;

/** The fields that the next version of an object lacks; lists are replaced by Envoy Gateway. */
function lostFields(before: unknown, after: unknown, path = ''): readonly string[] {
  if (!isRecord(before) || !isRecord(after) || isEqual(before, after)) return [];
  return Object.entries(before).flatMap(([name, value]) => {
    const inner = path === '' ? name : `${path}.${name}`;
    return Object.hasOwn(after, name) ? lostFields(value, after[name], inner) : [inner];
  });
}
