import { create, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../proto/grpc/reflection/v1_pb.ts';
import type { ServerReflectionRequest } from '../proto/grpc/reflection/v1_pb.ts';
import type { Methods, ServerStream, StreamListener } from './method.ts';
import { readSmallRequest } from './small-request.ts';
import { GRPC_CODES, GrpcError } from './status.ts';

/** A file of definitions, and what is in it. */
export type DefinitionFile = {
  /** Such as grpc/health/v1.proto. */
  readonly name: string;
  /** Its google.protobuf.FileDescriptorProto. */
  readonly bytes: Uint8Array;
  /** The names of the files that it imports. */
  readonly dependencies: readonly string[];
  /** The full names of all messages, enums, services and methods in it, such as grpc.health.v1.Health.Check. */
  readonly symbols: readonly string[];
  readonly services: readonly string[];
};

/** ServerReflectionInfo of grpc.reflection.v1 and v1alpha, about the services of these files. */
export function reflectionMethods(files: readonly DefinitionFile[]): Methods {
  const definitions: Definitions = {
    services: files.flatMap(({ services }) => services).sort(),
    byName: new Map(files.map(file => [file.name, file])),
    bySymbol: new Map(files.flatMap(file => file.symbols.map(symbol => [symbol, file] as const))),
  };
  // Both versions have the same messages but for the name of their package, which is not sent.
  const method = {
    is: 'streaming',
    open: (stream: ServerStream) => reflect(stream, definitions),
  } as const;
  return new Map([
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', method],
    ['/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo', method],
  ]);
}

type Definitions = {
  readonly services: readonly string[];
  readonly byName: ReadonlyMap<string, DefinitionFile>;
  readonly bySymbol: ReadonlyMap<string, DefinitionFile>;
};

/** Answers each request; a caller that does not take the answers gets no more of them. */
function reflect(stream: ServerStream, definitions: Definitions): StreamListener {
  return {
    message: bytes => {
      const request = readSmallRequest(ServerReflectionRequestSchema, bytes);
      const answer = create(ServerReflectionResponseSchema, {
        validHost: request.host,
        originalRequest: request,
        messageResponse: answerTo(request, definitions),
      });
      if (stream.send(toBinary(ServerReflectionResponseSchema, answer))) return;
      throw new GrpcError('RESOURCE_EXHAUSTED', 'the answers are not taken');
    },
    finished: () => stream.end(),
    drained: nothing,
    closed: nothing,
  };
}

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

function answerTo({ messageRequest }: ServerReflectionRequest, definitions: Definitions): Answer {
  const { services, byName, bySymbol } = definitions;
  switch (messageRequest.case) {
    case 'listServices':
      return { case: 'listServicesResponse', value: { service: services.map(name => ({ name })) } };
    case 'fileByFilename':
      return filesFrom(byName.get(messageRequest.value), byName);
    case 'fileContainingSymbol':
      return filesFrom(bySymbol.get(messageRequest.value), byName);
    case 'fileContainingExtension':
    case 'allExtensionNumbersOfType':
      return errorOf('NOT_FOUND', 'there are no extensions');
    case undefined:
      return errorOf('UNIMPLEMENTED', 'nothing known is asked for');
  }
}

/** A file and all that it needs. */
function filesFrom(first: DefinitionFile | undefined, byName: Definitions['byName']): Answer {
  if (!first) return errorOf('NOT_FOUND', 'there is no such definition');
  const found = new Set([first]);
  for (const { dependencies } of found) {
    for (const name of dependencies) {
      const file = byName.get(name);
      if (file) found.add(file);
    }
  }
  return {
    case: 'fileDescriptorResponse',
    value: { fileDescriptorProto: Array.from(found, ({ bytes }) => bytes) },
  };
}

function errorOf(code: 'NOT_FOUND' | 'UNIMPLEMENTED', errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode: GRPC_CODES[code], errorMessage } };
}

function nothing(): void {
  // Each request is answered when it comes.
}
