import { createHash } from 'node:crypto';
import { kindOfPart } from './generated-part.ts';

/** The file of all parts but a few. */
const WHOLE = 'mesh-gateway.yaml';

/** Envoy Gateway knows one object of these kinds in each file: the last. */
const ONE_IN_A_FILE: readonly string[] = ['EnvoyProxy', 'GatewayClass'];

const ALONE = new RegExp(`^(${ONE_IN_A_FILE.join('|')})-[0-9a-f]{16}\\.yaml$`);

/** The name of the file that a part is in. */
export function fileOfPart(part: string): string {
  const kind = kindOfPart(part);
  if (!ONE_IN_A_FILE.includes(kind)) return WHOLE;
  return `${kind}-${createHash('sha256').update(part).digest('hex').slice(0, 16)}.yaml`;
}

/** Whether a file was made by an earlier run: others in the folder are not ours to change. */
export function isGeneratedFile(file: string): boolean {
  return file === WHOLE || ALONE.test(file);
}

const HEAD =
  '# Made for Envoy Gateway by mesh-gateway, and made anew at each change: change your own files instead.\n';

const BETWEEN = '---\n';

/** The text of a file. A part begins with its name; none of its own lines looks like that. */
export function textOfParts(parts: readonly (readonly [name: string, text: string])[]): string {
  const sorted = [...parts].sort(([a], [b]) => (a < b ? -1 : 1));
  return HEAD + sorted.map(([name, text]) => `# ${name}\n${text}`).join(BETWEEN);
}

/** The text of each part of a file. */
export function partsIn(text: string): ReadonlyMap<string, string> {
  const [, ...pieces] = text.split(/^# (\S+)\n/m);
  const names = pieces.filter((_, index) => index % 2 === 0);
  return new Map(names.map((name, index) => [name, withoutEnd(pieces[2 * index + 1] ?? '')]));
}

function withoutEnd(text: string): string {
  return text.endsWith(BETWEEN) ? text.slice(0, -BETWEEN.length) : text;
}
