import { declaredNameOf } from '../../src/api/names.ts';
import type { ReadManifests } from '../../src/files/manifests.ts';

/** A warning or error of the log as one sentence; undefined for other lines. */
export function warningIn(line: string): string | undefined {
  const { level, msg, object, file, line: at, why, error } = JSON.parse(line) as Record<string, unknown>;
  if (level !== 'warn' && level !== 'error') return undefined;
  const place = [object, file, at].filter(isSet).map(String).join(':');
  const reason = why ?? (error as { readonly message?: unknown } | undefined)?.message;
  return [msg, place, reason].filter(isSet).map(String).join(': ');
}

/** A refusal of Envoy Gateway after the user's files that have the object, in place of the generated one. */
export function refusalIn(why: string, manifests: Pick<ReadManifests, 'get' | 'keys'>): string {
  const [, what = '', kind, name = ''] = /: ((\w+)\.\S+ "([^"]+)" is invalid: [^]*)/.exec(why) ?? [];
  const { declared } = declaredNameOf(name);
  const files = manifests.keys().flatMap(key => {
    const [, itsKind, , itsName] = key.split('|');
    return itsKind === kind && itsName === declared ? [manifests.get(key)?.file ?? ''] : [];
  });
  return files.length === 0 ? why : `${files.join(', ')}: ${what}`;
}

function isSet(part: unknown): boolean {
  return part !== undefined && part !== '';
}
