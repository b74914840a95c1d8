import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { reflectionMethods } from '../../../src/extension/grpc/reflection.ts';
import type { DefinitionFile } from '../../../src/extension/grpc/reflection.ts';
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../../src/extension/proto/grpc/reflection/v1_pb.ts';
import type { ServerReflectionResponse } from '../../../src/extension/proto/grpc/reflection/v1_pb.ts';
import { codeOf, testClient } from '../../support/grpc/client.ts';
import { serving } from '../../support/grpc/serving.ts';

const file = (name: string, more: Partial<DefinitionFile>): DefinitionFile => ({
  name,
  bytes: Buffer.from(name),
  dependencies: [],
  symbols: [],
  services: [],
  ...more,
});

const files = [
  file('b.proto', {
    dependencies: ['a.proto', 'missing.proto'],
    symbols: ['b.Service', 'b.Service.Call', 'b.Request'],
    services: ['b.Service'],
  }),
  file('a.proto', { dependencies: ['c.proto'], symbols: ['a.Service'], services: ['a.Service'] }),
  file('c.proto', { dependencies: ['b.proto'], symbols: ['c.Message'] }),
];

type Request = MessageInitShape<typeof ServerReflectionRequestSchema>['messageRequest'];

async function ask(
  version: string,
  ...requests: readonly Request[]
): Promise<readonly ServerReflectionResponse[]> {
  const { port } = await serving({ methods: Object.fromEntries(reflectionMethods(files)) });
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const stream = testClient(port).stream(path);
  const answers: ServerReflectionResponse[] = [];
  stream.on('data', (bytes: Buffer) => answers.push(fromBinary(ServerReflectionResponseSchema, bytes)));
  const code = codeOf(stream);
  for (const messageRequest of requests) {
    const request = create(ServerReflectionRequestSchema, {
      host: 'here',
      ...(messageRequest && { messageRequest }),
    });
    stream.write(Buffer.from(toBinary(ServerReflectionRequestSchema, request)));
  }
  stream.end();
  expect(await code).toBe(status.OK);
  return answers;
}

const namesIn = ({ messageResponse }: ServerReflectionResponse) =>
  messageResponse.case === 'fileDescriptorResponse'
    ? messageResponse.value.fileDescriptorProto.map(bytes => Buffer.from(bytes).toString())
    : messageResponse.case;

describe.each(['v1', 'v1alpha'])('reflection %s', version => {
  it('lists the services', async () => {
    const [answer] = await ask(version, { case: 'listServices', value: '' });
    expect(answer).toMatchObject({
      validHost: 'here',
      originalRequest: { host: 'here', messageRequest: { case: 'listServices' } },
      messageResponse: {
        case: 'listServicesResponse',
        value: { service: [{ name: 'a.Service' }, { name: 'b.Service' }] },
      },
    });
  });

  it.each<[string, Request]>([
    ['its name', { case: 'fileByFilename', value: 'b.proto' }],
    ['a service', { case: 'fileContainingSymbol', value: 'b.Service' }],
    ['a method', { case: 'fileContainingSymbol', value: 'b.Service.Call' }],
    ['a message', { case: 'fileContainingSymbol', value: 'b.Request' }],
  ])('finds a file by %s, with all that it needs, each once', async (_, request) => {
    const answers = await ask(version, request);
    expect(answers.map(namesIn)).toEqual([['b.proto', 'a.proto', 'c.proto']]);
  });

  it('says what it does not know, and goes on', async () => {
    const answers = await ask(
      version,
      { case: 'fileByFilename', value: 'other.proto' },
      { case: 'fileContainingSymbol', value: '__proto__' },
      { case: 'allExtensionNumbersOfType', value: 'b.Request' },
      { case: 'fileContainingExtension', value: { containingType: 'b.Request', extensionNumber: 1 } },
      undefined,
      { case: 'fileByFilename', value: 'c.proto' },
    );
    const codes = answers.map(({ messageResponse: { case: is, value } }) =>
      is === 'errorResponse' ? value.errorCode : is,
    );
    expect(codes).toEqual([5, 5, 5, 5, 12, 'fileDescriptorResponse']);
  });

  it.each([
    ['no request', Buffer.of(0x0a, 0xff)],
    ['longer than any request', Buffer.alloc(70_000, Buffer.of(0x42, 0))],
  ])('refuses what is %s', async (_, bytes) => {
    const { port } = await serving({ methods: Object.fromEntries(reflectionMethods(files)) });
    const stream = testClient(port).stream(
      `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
    );
    const code = codeOf(stream);
    stream.write(bytes);
    expect(await code).toBe(status.INVALID_ARGUMENT);
  });
});
