import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { create, createFileRegistry } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import {
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_struct,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { protoDescriptors, protoModules, ProtoRefusal } from '../../codegen/protobuf/proto.ts';
import type { ProtoFiles } from '../../codegen/protobuf/proto.ts';

/** The files of a folder and of those in it, by their path below it. */
function filesIn(folder: string): ProtoFiles {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name));
  return new Map(paths.map(path => [relative(folder, path), readFileSync(path, 'utf8')]));
}

const product = filesIn('proto');

const SYNTAX = 'syntax = "proto3";\n';
const A = `${SYNTAX} package house.a; message Room { string name = 1; }`;
const B = `${SYNTAX} package house.b; import "house/a.proto"; message Floor { repeated house.a.Room rooms = 1; }`;

describe('the proto files of the product', () => {
  it('generate what is in src/extension/proto', () => {
    expect(new Map([...filesIn('src/extension/proto')].sort())).toEqual(
      new Map([...protoModules(product)].sort()),
    );
  });

  it('each have a comment', () => {
    const silent = [...product].filter(([, text]) => !text.startsWith('// ')).map(([path]) => path);
    expect(silent).toEqual([]);
  });

  it('are described as protobuf describes files', () => {
    const known = [
      file_google_protobuf_any,
      file_google_protobuf_duration,
      file_google_protobuf_struct,
      file_google_protobuf_wrappers,
    ];
    const file = [...known.map(({ proto }) => proto), ...protoDescriptors(product)];
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
    const cluster = registry.getMessage('envoy.config.cluster.v3.Cluster');
    const numbers = cluster?.fields.map(({ name, number }) => [name, number]);
    expect(numbers).toEqual(
      expect.arrayContaining([
        ['name', 1],
        ['transport_socket', 24],
        ['transport_socket_matches', 43],
      ]),
    );
    const { method } = registry.getService('envoy.service.endpoint.v3.EndpointDiscoveryService') ?? {};
    expect(Object.values(method ?? {}).map(({ name, methodKind }) => [name, methodKind])).toEqual([
      ['StreamEndpoints', 'bidi_streaming'],
      ['DeltaEndpoints', 'bidi_streaming'],
    ]);
  });
});

describe('proto files', () => {
  it('come after those that they import, in any order of reading', () => {
    const names = (files: ProtoFiles) => protoDescriptors(files).map(({ name }) => name);
    expect(
      names(
        new Map([
          ['house/b.proto', B],
          ['house/a.proto', A],
        ]),
      ),
    ).toEqual(['house/a.proto', 'house/b.proto']);
    const turned = [
      A.replace('house.a', 'house.z'),
      B.replaceAll('house.a', 'house.z').replace('house/a', 'house/z'),
    ];
    expect(
      names(
        new Map([
          ['house/z.proto', turned[0] ?? ''],
          ['house/b.proto', turned[1] ?? ''],
        ]),
      ),
    ).toEqual(['house/z.proto', 'house/b.proto']);
  });

  it('describe maps, choices and enums', () => {
    const text = `${SYNTAX} package house.a; enum Kind { NONE = 0; BED = 2; }
      message Room { map<string, Kind> kinds_of_beds = 3; oneof door { string name = 1; int64 number = 2; } }`;
    const [file] = protoDescriptors(new Map([['house/a.proto', text]]));
    const [room] = file?.messageType ?? [];
    expect(
      room?.field.map(({ name, jsonName, number, typeName, oneofIndex }) => [
        name,
        jsonName,
        number,
        typeName,
        oneofIndex,
      ]),
    ).toEqual([
      ['kinds_of_beds', 'kindsOfBeds', 3, '.house.a.Room.KindsOfBedsEntry', 0],
      ['name', 'name', 1, '', 0],
      ['number', 'number', 2, '', 0],
    ]);
    expect(room?.nestedType.map(({ name, options }) => [name, options?.mapEntry])).toEqual([
      ['KindsOfBedsEntry', true],
    ]);
    expect(file?.enumType[0]?.value.map(({ name, number }) => [name, number])).toEqual([
      ['NONE', 0],
      ['BED', 2],
    ]);
  });

  it.each([
    [
      'lies where its package does not',
      'house/b.proto',
      A,
      'declares the package "house.a": move it to house/a.proto',
    ],
    ['has no package', 'a.proto', `${SYNTAX} message Room {}`, 'declares the package "": move it to .proto'],
    ['is no protobuf', 'house/a.proto', `${SYNTAX} package house.a; message {`, 'illegal'],
    [
      'names what does not exist',
      'house/a.proto',
      `${SYNTAX} package house.a; message Room { Door door = 1; }`,
      'Door',
    ],
    [
      'uses what it does not import',
      'house/a.proto',
      `${SYNTAX} package house.a; message Room { google.protobuf.Any door = 1; }`,
      'must import google/protobuf/any.proto',
    ],
    [
      'imports what it does not use',
      'house/a.proto',
      `${SYNTAX} package house.a; import "google/protobuf/any.proto"; message Room {}`,
      'imports google/protobuf/any.proto and does not use it',
    ],
  ])('are refused where one %s', (_, path, text, why) => {
    const generate = () => protoModules(new Map([[path, text]]));
    expect(generate).toThrow(ProtoRefusal);
    expect(generate).toThrow(why);
  });

  it('are refused where they import each other', () => {
    const a = `${SYNTAX} package house.a; import "house/b.proto"; message Room { house.b.Floor floor = 1; }`;
    expect(() =>
      protoModules(
        new Map([
          ['house/a.proto', a],
          ['house/b.proto', B],
        ]),
      ),
    ).toThrow('imports itself');
  });
});
