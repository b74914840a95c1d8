import { isCredential, isCredentialField } from '../../api/credentials.ts';
import { isRecord } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { NAMESPACE, OAUTH_SECRET } from '../../api/names.ts';
import type { Problem, Steps } from '../../api/problem.ts';

/** Finds credentials that are written into an object of our group, where everybody sees them who may read it. */
export function credentialsIn({ spec }: Fields): readonly Problem[] {
  return placesIn(spec, ['spec']).map(({ at }) => ({
    reason: 'CredentialInObject',
    at,
    text: 'is a credential, and this object is no Secret',
    fix: 'remove it, revoke it where others could read it, and store an OAuth client in a Secret',
    example: `kubectl -n ${NAMESPACE} create secret generic ${OAUTH_SECRET} --from-literal=client-id="$CLIENT_ID" --from-literal=client-secret="$CLIENT_SECRET"`,
  }));
}

/** The credentials themselves, which are never shown. */
export function credentialTextsIn({ spec }: Fields): readonly string[] {
  return placesIn(spec, ['spec']).map(({ text }) => text);
}

type Place = { readonly at: Steps; readonly text: string };

function placesIn(value: unknown, at: Steps): readonly Place[] {
  if (typeof value === 'string') {
    const name = at.at(-1);
    const isNamedSo = typeof name === 'string' && isCredentialField(name) && value !== '';
    return isNamedSo || isCredential(value) ? [{ at, text: value }] : [];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => placesIn(item, [...at, index]));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, item]) => placesIn(item, [...at, name]));
}
