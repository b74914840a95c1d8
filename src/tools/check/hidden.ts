import { GROUP } from '../../api/generated/kinds.ts';
import { validators } from '../../api/generated/validators.ts';
import { isRecord } from '../../api/json.ts';
import type { Outline } from '../../api/validation/validator.ts';
import { readPlaced } from '../../api/yaml-documents.ts';
import { credentialTextsIn } from './credentials.ts';
import { groupOf } from './objects.ts';
import type { Finding, SourceFile } from './objects.ts';

/** Whether the line of a finding may be shown: not where a Secret or a sensitive field has a value in it. */
export function excerptGuard(files: readonly SourceFile[]): (finding: Finding, line: string) => boolean {
  const texts = new Map(files.map(({ name, text }) => [name, text]));
  const hidden = new Map<string, readonly string[] | 'unknown'>();
  return ({ file = '' }, line) => {
    const text = texts.get(file) ?? '';
    const values = hidden.get(file) ?? hiddenIn(text);
    hidden.set(file, values);
    return values !== 'unknown' && !values.some(value => line.includes(value));
  };
}

/** What may hold secrets where a document cannot be read. */
const SUSPICIOUS = /\bSecret\b|\b(headers|extraEnv|controlURL|loginServer|proxyURL|ca)\b/;

/** Each line of the values that are never shown; `unknown` where what is not YAML may hold some. */
function hiddenIn(text: string): readonly string[] | 'unknown' {
  const { placed, faults } = readPlaced(text);
  if (faults.length > 0 && SUSPICIOUS.test(text)) return 'unknown';
  const values = placed.flatMap(({ object }) => secretsOf(object));
  return values.flatMap(value => value.split('\n').map(line => line.trim())).filter(line => line !== '');
}

function secretsOf(object: unknown): readonly string[] {
  if (!isRecord(object)) return [];
  const { kind, data, stringData } = object;
  if (kind === 'Secret') return [...textsIn(data), ...textsIn(stringData)];
  const validator = Object.entries(validators).find(([name]) => name === kind)?.[1];
  if (!validator || groupOf(object) !== GROUP) return [];
  return [...sensitiveIn(object, validator.outline), ...credentialTextsIn(object)];
}

function sensitiveIn(value: unknown, outline: Outline | undefined): readonly string[] {
  if (!outline) return [];
  if (outline.isSensitive) return textsIn(value);
  if (Array.isArray(value)) return value.flatMap(item => sensitiveIn(item, outline.items));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, item]) =>
    sensitiveIn(item, outline.values ?? outline.fields?.[name]),
  );
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)];
  return isRecord(value) || Array.isArray(value) ? Object.values(value).flatMap(textsIn) : [];
}
