import type { HealthCheck, Kinds } from '../../../api/generated/types.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import { keyOf } from '../../../api/key.ts';
import { within } from '../../../api/problem.ts';
import type { Why } from '../../../api/problem.ts';
import { refTo } from '../../../api/objects/references.ts';
import { SECRETS_OF_OBJECT } from '../../../api/shares.ts';
import type { EndpointInputs, InputSource } from './inputs.ts';
import { Secrets } from './secrets.ts';
import type { Secret, SecretsDeps, UsedKeys } from './secrets.ts';

type HeaderFrom = NonNullable<HealthCheck['headersFrom']>[number];

/** The headers of healthCheck.headersFrom. Their values stay in memory; no problem has one. */
export function secretHeaders(deps: SecretsDeps): InputSource {
  const secrets = new Secrets(deps);
  return {
    use: object => {
      const { namespace = '' } = object.metadata;
      secrets.use(keyOf(refTo(object)), namespace, usedKeys(checksWithSecrets(object)));
    },
    read: object => {
      const { namespace = '' } = object.metadata;
      const checked = checksWithSecrets(object);
      const used = usedKeys(checked);
      const secretOf = (name: string) =>
        used.has(name) ? secrets.of(namespace, name) : { problem: tooMany(namespace, name) };
      return Promise.resolve(
        new Map(checked.map(({ name, headers }) => [name, inputsOf(headers, namespace, secretOf)])),
      );
    },
    subscribe: listener => secrets.subscribe(listener),
    forget: object => secrets.use(object, '', new Map()),
  };
}

function checksWithSecrets(object: Kinds['MeshEndpoints']) {
  return endpointsOf(object).flatMap(({ name, healthCheck }) => {
    const headers = healthCheck?.enabled ? (healthCheck.headersFrom ?? []) : [];
    return headers.length > 0 ? [{ name, headers }] : [];
  });
}

/** The keys of the Secrets that are read: the first ones in the order of the spec. */
function usedKeys(checked: readonly { readonly headers: readonly HeaderFrom[] }[]): UsedKeys {
  const used = new Map<string, Set<string>>();
  const refs = checked.flatMap(({ headers }) => headers).map(({ secretKeyRef }) => secretKeyRef);
  for (const { name, key } of refs) {
    if (used.has(name) || used.size < SECRETS_OF_OBJECT) {
      used.set(name, (used.get(name) ?? new Set()).add(key));
    }
  }
  return used;
}

function tooMany(namespace: string, name: string): Why {
  return {
    text: `the checks of this object name more than ${SECRETS_OF_OBJECT} Secrets, and Secret ${namespace}/${name} is beyond them`,
    fix: 'store several tokens under different keys of one Secret, or divide the object',
  };
}

function inputsOf(
  headers: readonly HeaderFrom[],
  namespace: string,
  secretOf: (name: string) => Secret | undefined,
): EndpointInputs {
  const found: (readonly [name: string, value: string])[] = [];
  for (const [index, { name, secretKeyRef }] of headers.entries()) {
    const value = valueOf(secretOf(secretKeyRef.name), secretKeyRef, namespace);
    if (value === undefined) return { isCheckPending: true };
    if (typeof value !== 'string') {
      return { checkProblem: within(`healthCheck.headersFrom[${index}] cannot be used`, value.problem) };
    }
    found.push([name, value]);
  }
  return { headers: found };
}

/** What HTTP allows in the value of a header. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The value of a header; undefined before it is read. */
function valueOf(
  secret: Secret | undefined,
  { name, key }: HeaderFrom['secretKeyRef'],
  namespace: string,
): string | { readonly problem: Why } | undefined {
  if (!secret || 'problem' in secret) return secret;
  if (!secret.data.has(key)) return undefined;
  const value = secret.data.get(key);
  const named = `Secret ${namespace}/${name}`;
  if (value === undefined)
    return { problem: { text: `${named} has no key ${key}`, fix: 'add it, or correct secretKeyRef.key' } };
  if (HEADER_VALUE.test(value)) return value;
  const text = `key ${key} of ${named} has characters that no header may have`;
  return { problem: { text, fix: 'correct it' } };
}
