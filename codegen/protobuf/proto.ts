import { create } from '@bufbuild/protobuf';
import {
  CodeGeneratorRequestSchema,
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_struct,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt';
import type { FileDescriptorProto } from '@bufbuild/protobuf/wkt';
import { protocGenEs } from '@bufbuild/protoc-gen-es/dist/cjs/src/protoc-gen-es-plugin.js';
import protobuf from 'protobufjs';
import { fileDescriptor, fullName, namesUsed } from './proto-descriptor.ts';

/** The text of each proto file by its path below proto/. */
export type ProtoFiles = ReadonlyMap<string, string>;

/** A proto file that cannot be generated from; the message names the file and what to change. */
export class ProtoRefusal extends Error {
  constructor(path: string, why: string) {
    super(`proto/${path}: ${why}`);
    this.name = 'ProtoRefusal';
  }
}

const PARAMETER = 'target=ts,import_extension=ts,erasable_syntax=true';

/** The files that come with the library, as it describes them. */
const WELL_KNOWN = [
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_struct,
  file_google_protobuf_wrappers,
].map(({ proto }) => proto);

/** A file as it was read. */
type Parsed = {
  readonly path: string;
  readonly declared: protobuf.NamespaceBase;
  readonly imports: readonly string[];
};

/** The TypeScript of each proto file, by its path below the folder of generated code. */
export function protoModules(files: ProtoFiles): ReadonlyMap<string, string> {
  const descriptors = protoDescriptors(files);
  const request = create(CodeGeneratorRequestSchema, {
    fileToGenerate: descriptors.map(({ name }) => name),
    protoFile: [...WELL_KNOWN, ...descriptors],
    parameter: PARAMETER,
  });
  // The plugin brings a copy of the library of its own; of the messages that it takes, the two are alike.
  const { file } = protocGenEs.run(request as unknown as Parameters<typeof protocGenEs.run>[0]);
  return new Map(file.map(({ name, content }) => [name, content]));
}

/** What the files declare, each after those that it imports. */
export function protoDescriptors(files: ProtoFiles): readonly FileDescriptorProto[] {
  const root = new protobuf.Root();
  for (const { name } of WELL_KNOWN) root.addJSON(protobuf.common.get(name)?.nested ?? {});
  const parsed = [...files].sort(byPath).map(([path, text]) => parse(root, path, text));
  parsed.forEach(resolve);
  const homes = new Map(parsed.map(({ path, declared }) => [fullName(declared), path]));
  parsed.forEach(file => checkImports(file, homes));
  return inOrder(parsed).map(({ path, declared, imports }) => fileDescriptor(path, declared, imports));
}

function byPath([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return one < other ? -1 : 1;
}

function parse(root: protobuf.Root, path: string, text: string): Parsed {
  const { package: name = '', imports = [] } = refusing(path, () =>
    protobuf.parse(text, root, { keepCase: true }),
  );
  const home = `${name.replaceAll('.', '/')}.proto`;
  if (home !== path) throw new ProtoRefusal(path, `declares the package "${name}": move it to ${home}`);
  const declared = root.lookup(name);
  if (!(declared instanceof protobuf.Namespace)) throw new ProtoRefusal(path, 'declares nothing');
  return { path, declared, imports };
}

function resolve({ path, declared }: Parsed): void {
  refusing(path, () => declared.resolveAll());
}

/** A file must import exactly what it uses. */
function checkImports({ path, declared, imports }: Parsed, homes: ReadonlyMap<string, string>): void {
  const needed = new Set(namesUsed(declared).map(name => homeOf(name, homes)));
  needed.delete(path);
  for (const one of needed) if (!imports.includes(one)) throw new ProtoRefusal(path, `must import ${one}`);
  for (const one of imports)
    if (!needed.has(one)) throw new ProtoRefusal(path, `imports ${one} and does not use it`);
}

/** The file that declares a type: of the packages that begin its name the longest, or the library's own. */
function homeOf(name: string, homes: ReadonlyMap<string, string>): string {
  const declares = ({ package: at, messageType, enumType }: FileDescriptorProto) =>
    [...messageType, ...enumType].some(type => `${at}.${type.name}` === name);
  const known = WELL_KNOWN.find(declares);
  if (known) return known.name;
  const parts = name.split('.');
  const packages = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'));
  return homes.get(packages.find(one => homes.has(one)) ?? '') ?? name;
}

function inOrder(parsed: readonly Parsed[]): readonly Parsed[] {
  const done = new Set<Parsed>();
  const visit = (file: Parsed, trail: readonly string[]): void => {
    if (done.has(file)) return;
    if (trail.includes(file.path)) throw new ProtoRefusal(file.path, `imports itself: ${trail.join(' -> ')}`);
    for (const other of parsed) if (file.imports.includes(other.path)) visit(other, [...trail, file.path]);
    done.add(file);
  };
  for (const file of parsed) visit(file, []);
  return [...done];
}

function refusing<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw new ProtoRefusal(path, error instanceof Error ? error.message : String(error));
  }
}
