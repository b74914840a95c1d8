import { crdName, crdYaml } from './crd.ts';
import type { Kind } from './kind.ts';
import { load } from './load.ts';
import type { SchemaFiles } from './load.ts';
import { outlineModule } from './outline.ts';
import { kindsModule, validatorsModule } from './registry.ts';
import { rulesModule } from './rules.ts';
import { shapeModule } from './shape.ts';
import { structureModule } from './structure.ts';
import { typesModule } from './types.ts';

/** Where the TypeScript and the CRDs go; every file in these folders is generated. */
export const CODE_FOLDER = 'src/api/generated';
export const CRD_FOLDER = 'dist/crds';

/** The text of each generated file by its path. */
export type Outputs = ReadonlyMap<string, string>;

/** Told which phase begins. */
export type Progress = (phase: string) => void;

/** Everything that the schema files generate. */
export function generate(files: SchemaFiles, begin: Progress): Promise<Outputs> {
  begin('load');
  const kinds = load(files);
  begin('types');
  const types = Promise.all([typesModule(kinds, 'stored'), typesModule(kinds, 'authored')]);
  begin('validators');
  const code = [
    ['kinds.ts', kindsModule(kinds)],
    ['validators.ts', validatorsModule(kinds)],
    ...kinds.flatMap(validatorParts),
  ] as const;
  begin('crds');
  const crds = kinds.map(kind => [`${CRD_FOLDER}/${crdName(kind)}.yaml`, crdYaml(kind)] as const);
  return types.then(([stored, authored]) => {
    const typed = [
      ['types.ts', stored],
      ['authored.ts', authored],
    ] as const;
    const modules = [...code, ...typed].map(([name, text]) => [`${CODE_FOLDER}/${name}`, text] as const);
    return new Map([...modules, ...crds]);
  });
}

function validatorParts(kind: Kind): readonly (readonly [string, string])[] {
  return [
    [`${kind.file}.outline.ts`, outlineModule(kind)],
    [`${kind.file}.rules.ts`, rulesModule(kind)],
    [`${kind.file}.shape.ts`, shapeModule(kind)],
    [`${kind.file}.structure.ts`, structureModule(kind)],
  ];
}
