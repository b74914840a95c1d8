import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { kinds } from '../../../src/api/generated/kinds.ts';
import type { KindName } from '../../../src/api/generated/kinds.ts';

/** One file of the corpus: an object, the rule that it proves, and its expected verdict. */
export type Case = {
  readonly file: string;
  readonly kind: KindName;
  readonly object: unknown;
  /** The rule that the file proves: `spec.endpoints[].port maximum`. */
  readonly rule: string;
  /** The path of its one fault; absent for a valid object. */
  readonly faultAt?: string;
};

const FOLDER = 'test/corpus';

/** Every file of the corpus, sorted by name. */
export function readCorpus(): readonly Case[] {
  return readdirSync(FOLDER).flatMap(folder =>
    readdirSync(`${FOLDER}/${folder}`)
      .sort()
      .map(name => readCase(`${folder}/${name}`)),
  );
}

function readCase(file: string): Case {
  const text = readFileSync(`${FOLDER}/${file}`, 'utf8');
  const header = new Map(
    [...text.matchAll(/^# (verdict|path|rule): (.+)$/gm)].map(([, key, value]) => [key, value]),
  );
  const verdict = header.get('verdict');
  const [rule, faultAt] = [header.get('rule'), header.get('path')];
  if (rule === undefined || (verdict === 'invalid') !== (faultAt !== undefined)) {
    throw new Error(`${file}: needs "# verdict: valid | invalid", "# rule:" and, where invalid, "# path:"`);
  }
  const object: unknown = parse(text);
  return { file, kind: kindOf(file), object, rule, ...(faultAt === undefined ? {} : { faultAt }) };
}

function kindOf(file: string): KindName {
  const [folder = ''] = file.split('/');
  const kind = Object.values(kinds).find(
    ({ kind: name }) => name.toLowerCase() === folder.replaceAll('-', ''),
  );
  if (!kind) throw new Error(`${file}: ${folder} is not the folder of a kind`);
  return kind.kind;
}
