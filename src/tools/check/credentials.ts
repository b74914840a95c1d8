import { isCredential, isCredentialField } from '../../api/credentials.ts';
import { validators } from '../../api/generated/validators.ts';
import type { Outline } from '../../api/validation/validator.ts';
import { isRecord } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { NAMESPACE, OAUTH_SECRET } from '../../api/names.ts';
import type { Problem, Steps } from '../../api/problem.ts';

/** Finds credentials that are written into an object of our group, where everybody sees them who may read it. */
export function credentialsIn(object: Fields): readonly Problem[] {
  return placesIn(object).map(({ at }) => ({
    reason: 'CredentialInObject',
    at,
    text: 'is a credential, and this object is no Secret',
    ...(at.includes('headers') ? { fix: `${REMOVE}, and name a Secret in headersFrom` } : TO_SECRET),
  }));
}

const REMOVE = 'remove it, revoke it where others could read it';

const TO_SECRET = {
  fix: `${REMOVE}, and store an OAuth client in a Secret`,
  example: `kubectl -n ${NAMESPACE} create secret generic ${OAUTH_SECRET} --from-literal=client-id="$CLIENT_ID" --from-literal=client-secret="$CLIENT_SECRET"`,
};

/** The credentials themselves, which are never shown. */
export function credentialTextsIn(object: Fields): readonly string[] {
  return placesIn(object).map(({ text }) => text);
}

type Place = { readonly at: Steps; readonly text: string };

function placesIn({ kind, spec }: Fields): readonly Place[] {
  const outline = Object.entries(validators).find(([name]) => name === kind)?.[1].outline;
  return placesBelow(spec, ['spec'], outline?.fields?.['spec']);
}

/** Users choose the names in a map, such as labels, and only those of values that may be secrets tell what they are. */
function placesBelow(
  value: unknown,
  at: Steps,
  outline: Outline | undefined,
  isNamed = true,
): readonly Place[] {
  if (typeof value === 'string') {
    const name = at.at(-1);
    const isNamedSo = isNamed && typeof name === 'string' && isCredentialField(name) && value !== '';
    return isNamedSo || isCredential(value) ? [{ at, text: value }] : [];
  }
  if (Array.isArray(value))
    return value.flatMap((item, index) => placesBelow(item, [...at, index], outline?.items));
  if (!isRecord(value)) return [];
  const { values, fields, isSensitive } = outline ?? {};
  return Object.entries(value).flatMap(([name, item]) =>
    placesBelow(item, [...at, name], values ?? fields?.[name], !values || isSensitive === true),
  );
}
