import type { KindName } from './generated/kinds.ts';
import type { Kinds } from './generated/types.ts';
import { validators } from './generated/validators.ts';
import { judge } from './judge.ts';
import type { Verdict } from './judge.ts';

export type { Verdict };

/**
 * Judges an object as the API server would with our CRDs installed, and gives it back as it would be stored: unknown
 * fields and nulls dropped, defaults filled in. The value itself is not changed and may be any JSON. Of metadata only
 * names, namespaces and label values are judged; the rest is the API server's.
 */
export function validate<K extends KindName>(kind: K, value: unknown): Verdict<Kinds[K]> {
  return judge(validators[kind], value);
}
