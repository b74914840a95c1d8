import { configurationModules, loadConfiguration } from './configuration.ts';
import { crdName, crdYaml } from './crd.ts';
import { withFieldTables } from './field-tables.ts';
import { withReasonTables } from './reason-tables.ts';
import { load } from './load/load.ts';
import type { SchemaFiles } from './load/load.ts';
import { outlineModule } from './validator/outline.ts';
import { protoModules } from './protobuf/proto.ts';
import type { ProtoFiles } from './protobuf/proto.ts';
import { kindsModule, validatorsModule } from './validator/registry.ts';
import { rulesModule } from './validator/rules.ts';
import { shapeModule } from './validator/shape.ts';
import { structureModule } from './validator/structure.ts';
import { typesModule } from './types.ts';

/** Where the TypeScript and the CRDs go; every file in these folders is generated. */
export const CODE_FOLDER = 'src/api/generated';
export const PROTO_FOLDER = 'src/extension/proto';
export const CRD_FOLDER = 'dist/crds';
export const CONFIGURATION_FOLDER = 'synth/generated';

/** The text of each generated file by its path. */
export type Outputs = ReadonlyMap<string, string>;

/** Called when a phase starts. */
export type Progress = (phase: string) => void;

/** The hand-written sources. */
export type Inputs = {
  readonly schemas: SchemaFiles;
  readonly protos: ProtoFiles;
  /** The schema of the configuration of synth. */
  readonly configuration?: string;
  /** The pages with tables of fields or reasons, by path. */
  readonly pages?: ReadonlyMap<string, string>;
};

/** Generates all files from the schemas and proto files. */
export function generate(
  { schemas, protos, configuration, pages = new Map() }: Inputs,
  begin: Progress,
): Promise<Outputs> {
  begin('load');
  const kinds = load(schemas);
  const settings = configuration === undefined ? [] : configurationModules(loadConfiguration(configuration));
  begin('types');
  const types = Promise.all([typesModule(kinds, 'stored'), typesModule(kinds, 'authored')]);
  begin('validators');
  const code = [
    ['kinds.ts', kindsModule(kinds)],
    ['validators.ts', validatorsModule(kinds)],
    ['outline.ts', outlineModule(kinds)],
    ['shape.ts', shapeModule(kinds)],
    ['structure.ts', structureModule(kinds)],
    ...kinds.map(kind => [`${kind.file}.rules.ts`, rulesModule(kind)] as const),
  ] as const;
  begin('crds');
  const crds = kinds.map(kind => [`${CRD_FOLDER}/${crdName(kind)}.yaml`, crdYaml(kind)] as const);
  begin('protobuf');
  const messages = [...protoModules(protos)].map(
    ([name, text]) => [`${PROTO_FOLDER}/${name}`, text] as const,
  );
  begin('pages');
  const documented = [...pages].map(
    ([path, text]) => [path, withReasonTables(withFieldTables(text, kinds))] as const,
  );
  return Promise.all([types, settings]).then(([[stored, authored], installation]) => {
    const typed = [
      ['types.ts', stored],
      ['authored.ts', authored],
    ] as const;
    const modules = [...code, ...typed].map(([name, text]) => [`${CODE_FOLDER}/${name}`, text] as const);
    const synth = installation.map(([name, text]) => [`${CONFIGURATION_FOLDER}/${name}`, text] as const);
    return new Map([...modules, ...crds, ...messages, ...synth, ...documented]);
  });
}
