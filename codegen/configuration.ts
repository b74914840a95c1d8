import { build } from './load/build.ts';
import { checkNodes, checkTitles } from './load/checks.ts';
import { isJsonObject } from './json.ts';
import type { JsonObject } from './json.ts';
import type { Whole } from './kind.ts';
import { parse } from './load/load.ts';
import { outlineModule } from './validator/outline.ts';
import { Refusal } from './refusal.ts';
import { rulesModule } from './validator/rules.ts';
import { shapeModule } from './validator/shape.ts';
import { structureModule } from './validator/structure.ts';
import { typesModule } from './types.ts';

/** How refusals name the file: as a path from the folder of the kinds. */
const FILE = '../synth/config.json';

const ROOT_ONLY = ['$schema', '$defs'];

/** Reads the schema of a configuration, which is not a kind: it has neither apiVersion nor metadata. */
export function loadConfiguration(text: string): Whole {
  const place = { file: FILE, pointer: '' };
  const document = parse(FILE, text);
  if (!isJsonObject(document)) throw new Refusal(place, 'must be an object');
  const own = Object.entries(document).filter(([keyword]) => !ROOT_ONLY.includes(keyword));
  const schema: JsonObject = Object.fromEntries(own);
  const root = build(new Map([[FILE, document]]), schema, place, []);
  if (root.is !== 'object' || root.title === undefined)
    throw new Refusal(place, 'must be an object with a title');
  const whole = { name: root.title, root };
  checkNodes(root);
  checkTitles([whole]);
  return whole;
}

/** Its validator and its type, in the same parts as those of a kind. */
export function configurationModules(
  whole: Whole,
): Promise<readonly (readonly [name: string, text: string])[]> {
  const parts = [
    ['outline.ts', outlineModule([whole])],
    ['rules.ts', rulesModule(whole)],
    ['shape.ts', shapeModule([whole])],
    ['structure.ts', structureModule([whole])],
  ] as const;
  return typesModule([whole], 'stored').then(types =>
    [...parts, ['types.ts', types] as const].map(([name, text]) => [name, moved(text)] as const),
  );
}

/** Generated modules expect to be beside the validators of the kinds. */
function moved(text: string): string {
  return text
    .replaceAll("from '../", "from '../../src/api/")
    .replace('from schema/.', 'from synth/config.json.');
}
