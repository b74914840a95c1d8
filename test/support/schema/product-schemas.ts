import { readdirSync, readFileSync } from 'node:fs';
import { load } from '../../../codegen/load/load.ts';
import type { SchemaFiles } from '../../../codegen/load/load.ts';
import type { Kind } from '../../../codegen/kind.ts';

/** The schema files of the product. */
export function schemaFiles(): SchemaFiles {
  return new Map(readdirSync('schema').map(name => [name, readFileSync(`schema/${name}`, 'utf8')]));
}

/** The kinds of the product. */
export function productKinds(): readonly Kind[] {
  return load(schemaFiles());
}
