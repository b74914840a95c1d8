import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { file_envoy_service_endpoint_v3 } from '../../../src/extension/proto/envoy/service/endpoint/v3_pb.ts';
import { file_envoygateway_extension } from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { bytesField, bytesOf, textOf, valuesOf } from '../../../src/extension/wire.ts';
import { codeOf, testClient } from '../../support/grpc/client.ts';
import { serving } from '../../support/grpc/serving.ts';

/** The fields of reflection requests and responses. */
const ASK = { fileByFilename: 3, fileContainingSymbol: 4, listServices: 7 } as const;
const ANSWER = { files: 4, services: 6, error: 7 } as const;

async function reflect(version: string, ...requests: readonly [keyof typeof ASK, string][]) {
  const files = [file_envoygateway_extension, file_envoy_service_endpoint_v3];
  const { port } = await serving({ files });
  const stream = testClient(port).stream(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);
  const answers: Buffer[] = [];
  stream.on('data', (bytes: Buffer) => answers.push(bytes));
  const code = codeOf(stream);
  for (const [what, text] of requests) stream.write(Buffer.from(bytesField(ASK[what], Buffer.from(text))));
  stream.end();
  expect(await code).toBe(status.OK);
  return answers;
}

const empty = new Uint8Array();

/** The names of the files in a response, and what they define. */
function filesIn(answer: Uint8Array) {
  const files = valuesOf(bytesOf(answer, ANSWER.files) ?? empty, 1, 100);
  return files.map(bytes => fromBinary(FileDescriptorProtoSchema, bytes));
}

describe.each(['v1', 'v1alpha'])('reflection %s', version => {
  it('lists all services, itself and health included', async () => {
    const [answer = empty] = await reflect(version, ['listServices', '']);
    const names = valuesOf(bytesOf(answer, ANSWER.services) ?? empty, 1, 100).map(one => textOf(one, 1));
    expect(names.sort()).toEqual([
      'envoy.service.endpoint.v3.EndpointDiscoveryService',
      'envoygateway.extension.EnvoyGatewayExtension',
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
    ]);
  });

  it.each<[keyof typeof ASK, string]>([
    ['fileByFilename', 'envoygateway/extension.proto'],
    ['fileContainingSymbol', 'envoygateway.extension.EnvoyGatewayExtension'],
    ['fileContainingSymbol', 'envoygateway.extension.EnvoyGatewayExtension.PostTranslateModify'],
    ['fileContainingSymbol', 'envoygateway.extension.PostTranslateModifyRequest'],
  ])('finds a file by %s %s', async (what, text) => {
    const [answer = empty] = await reflect(version, [what, text]);
    const [file] = filesIn(answer);
    expect(file?.service[0]?.method.map(({ name }) => name)).toContain('PostTranslateModify');
  });

  it('returns a file with its imports', async () => {
    const [answer = empty] = await reflect(version, [
      'fileContainingSymbol',
      'envoy.service.endpoint.v3.EndpointDiscoveryService',
    ]);
    const files = filesIn(answer);
    const defined = files.flatMap(({ package: name, messageType }) =>
      messageType.map(message => `.${name}.${message.name}`),
    );
    const used = files.flatMap(({ service }) =>
      service.flatMap(({ method }) => method.map(m => m.inputType)),
    );
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter(type => !defined.includes(type))).toEqual([]);
  });

  it('returns NOT_FOUND for unknown names, and continues', async () => {
    const answers = await reflect(
      version,
      ['fileByFilename', 'other.proto'],
      ['fileContainingSymbol', 'absent'],
      ['listServices', ''],
    );
    expect(answers.map(answer => bytesOf(answer, ANSWER.error) !== undefined)).toEqual([true, true, false]);
  });
});
