import { create } from '@bufbuild/protobuf';
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  ServiceDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import protobuf from 'protobufjs';

/** What a file declares, as protobuf itself describes it; every type in it has been resolved. */
export function fileDescriptor(
  name: string,
  declared: protobuf.NamespaceBase,
  dependency: readonly string[],
): FileDescriptorProto {
  return create(FileDescriptorProtoSchema, {
    name,
    package: fullName(declared),
    dependency: [...dependency],
    syntax: 'proto3',
    ...contents(declared),
    service: inside(declared, protobuf.Service).map(serviceDescriptor),
  });
}

/** The full names of the messages and enums that something declared mentions. */
export function namesUsed(declared: protobuf.NamespaceBase): readonly string[] {
  const fields = inside(declared, protobuf.Type).flatMap(type => [
    ...type.fieldsArray.flatMap(field => (field.resolvedType ? [fullName(field.resolvedType)] : [])),
    ...namesUsed(type),
  ]);
  const methods = inside(declared, protobuf.Service).flatMap(service =>
    service.methodsArray.flatMap(({ resolvedRequestType, resolvedResponseType }) =>
      [resolvedRequestType, resolvedResponseType].flatMap(type => (type ? [fullName(type)] : [])),
    ),
  );
  return [...fields, ...methods];
}

/** The name by which other files know something, such as google.rpc.Status. */
export function fullName(object: protobuf.ReflectionObject): string {
  return object.fullName.replace(/^\./, '');
}

type Named = Pick<protobuf.Field, 'name'>;
type Typed = Pick<protobuf.Field, 'type' | 'resolvedType'>;

type Class<Kind> = abstract new (...given: never[]) => Kind;

function inside<Kind extends protobuf.ReflectionObject>(
  declared: protobuf.NamespaceBase,
  kind: Class<Kind>,
): readonly Kind[] {
  return declared.nestedArray.filter(object => object instanceof kind) as unknown as readonly Kind[];
}

function contents(declared: protobuf.NamespaceBase) {
  return {
    messageType: inside(declared, protobuf.Type).map(messageDescriptor),
    enumType: inside(declared, protobuf.Enum).map(enumDescriptor),
  };
}

function messageDescriptor(type: protobuf.Type): DescriptorProto {
  const { messageType: nestedType, enumType } = contents(type);
  const maps = type.fieldsArray.filter(field => field instanceof protobuf.MapField);
  return create(DescriptorProtoSchema, {
    name: type.name,
    field: type.fieldsArray.map(field => fieldDescriptor(type, field)),
    nestedType: [...nestedType, ...maps.map(entryDescriptor)],
    enumType,
    oneofDecl: type.oneofsArray.map(({ name }) => ({ name })),
  });
}

function fieldDescriptor(type: protobuf.Type, field: protobuf.Field): FieldDescriptorProto {
  const isMap = field instanceof protobuf.MapField;
  const described = isMap
    ? { type: Type.MESSAGE, typeName: `.${fullName(type)}.${entryName(field)}` }
    : typeOf(field);
  const at = field.partOf ? type.oneofsArray.indexOf(field.partOf) : undefined;
  return create(FieldDescriptorProtoSchema, {
    name: field.name,
    jsonName: jsonName(field.name),
    number: field.id,
    label: field.repeated || isMap ? Label.REPEATED : Label.OPTIONAL,
    ...described,
    ...(at === undefined ? {} : { oneofIndex: at }),
  });
}

/** A map is a list of entries that are messages. */
function entryDescriptor(field: protobuf.MapField): DescriptorProto {
  const key = {
    name: 'key',
    jsonName: 'key',
    number: 1,
    label: Label.OPTIONAL,
    type: scalarType(field.keyType),
  };
  const value = { name: 'value', jsonName: 'value', number: 2, label: Label.OPTIONAL, ...typeOf(field) };
  return create(DescriptorProtoSchema, {
    name: entryName(field),
    field: [key, value],
    options: { mapEntry: true },
  });
}

function entryName({ name }: Named): string {
  return `${name.replaceAll(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())}Entry`;
}

/** The name that a field has in JSON. */
function jsonName(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function typeOf({ type, resolvedType }: Typed) {
  if (resolvedType === null) return { type: scalarType(type) };
  const typeName = `.${fullName(resolvedType)}`;
  return { type: resolvedType instanceof protobuf.Enum ? Type.ENUM : Type.MESSAGE, typeName };
}

function scalarType(name: string): Type {
  return Type[name.toUpperCase() as keyof typeof Type];
}

function enumDescriptor({ name, values }: protobuf.Enum): EnumDescriptorProto {
  const value = Object.entries(values).map(([text, number]) => ({ name: text, number }));
  return create(EnumDescriptorProtoSchema, { name, value });
}

function serviceDescriptor({ name, methodsArray }: protobuf.Service): ServiceDescriptorProto {
  const method = methodsArray.map(one => ({
    name: one.name,
    inputType: `.${fullName(one.resolvedRequestType ?? one)}`,
    outputType: `.${fullName(one.resolvedResponseType ?? one)}`,
    clientStreaming: one.requestStream === true,
    serverStreaming: one.responseStream === true,
  }));
  return create(ServiceDescriptorProtoSchema, { name, method });
}
