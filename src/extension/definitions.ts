import { toBinary } from '@bufbuild/protobuf';
import type { DescFile, DescMessage } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { DefinitionFile } from './grpc/reflection.ts';
import { file_envoy_service_endpoint_v3 } from './proto/envoy/service/endpoint/v3_pb.ts';
import { file_envoygateway_extension } from './proto/envoygateway/extension_pb.ts';
import { file_grpc_health_v1 } from './proto/grpc/health/v1_pb.ts';
import { file_grpc_reflection_v1 } from './proto/grpc/reflection/v1_pb.ts';
import { file_grpc_reflection_v1alpha } from './proto/grpc/reflection/v1alpha_pb.ts';

/** The definitions of everything that the extension server serves, with all that they import. */
export function servedDefinitions(): readonly DefinitionFile[] {
  const files = new Set<DescFile>();
  const served = [
    file_envoygateway_extension,
    file_envoy_service_endpoint_v3,
    file_grpc_health_v1,
    file_grpc_reflection_v1,
    file_grpc_reflection_v1alpha,
  ];
  for (const file of served) addWithImports(file, files);
  return [...files].map(definitionOf);
}

function addWithImports(file: DescFile, to: Set<DescFile>): void {
  if (to.has(file)) return;
  to.add(file);
  for (const imported of file.dependencies) addWithImports(imported, to);
}

function definitionOf({ proto, messages, enums, services }: DescFile): DefinitionFile {
  const all = messages.flatMap(withNested);
  const types = [...all, ...enums, ...all.flatMap(message => message.nestedEnums)];
  const methods = services.flatMap(({ typeName, methods }) =>
    methods.map(({ name }) => `${typeName}.${name}`),
  );
  const names = services.map(({ typeName }) => typeName);
  return {
    name: proto.name,
    bytes: toBinary(FileDescriptorProtoSchema, proto),
    dependencies: proto.dependency,
    symbols: [...types.map(({ typeName }) => typeName), ...names, ...methods],
    services: names,
  };
}

function withNested(message: DescMessage): readonly DescMessage[] {
  return [message, ...message.nestedMessages.flatMap(withNested)];
}
