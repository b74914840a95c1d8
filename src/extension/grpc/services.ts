import { create, toBinary } from '@bufbuild/protobuf';
import type { DescFile } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader';
import type { AnyDefinition, PackageDefinition, ServiceDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import type { Server } from '@grpc/grpc-js';

type ServingStatus = 'SERVING' | 'NOT_SERVING';

/** The health of the server (the empty name) and of each service: all have the same status. */
export interface Health {
  /** Sets the status, and sends it to watchers. */
  set(status: ServingStatus): void;
}

/** Adds the health service, initially NOT_SERVING, and reflection, for the services of `files` and these two. */
export function addHealthAndReflection(server: Server, files: readonly DescFile[]): Health {
  const health = new HealthImplementation();
  const services = Object.values(loadFileDescriptorSetFromBuffer(descriptorSet(files))).filter(isService);
  // Their definitions are only available by adding them to a server.
  const collector = { addService: (service: ServiceDefinition) => void services.push(service) };
  health.addToServer(collector);
  new ReflectionService({}).addToServer(collector);
  health.addToServer(server);
  new ReflectionService(typesOf(services)).addToServer(server);
  const names = ['', ...services.map(nameOf)];
  const set = (status: ServingStatus) => {
    for (const name of names) health.setStatus(name, status);
  };
  set('NOT_SERVING');
  return { set };
}

/** The files with all their imports. */
function descriptorSet(files: readonly DescFile[]): Buffer {
  const all = new Set<DescFile>();
  const add = (file: DescFile): void => {
    if (all.has(file)) return;
    file.dependencies.forEach(add);
    all.add(file);
  };
  files.forEach(add);
  const set = create(FileDescriptorSetSchema, { file: Array.from(all, ({ proto }) => proto) });
  return Buffer.from(toBinary(FileDescriptorSetSchema, set));
}

function isService(definition: AnyDefinition): definition is ServiceDefinition {
  return !('format' in definition);
}

/** The request types, each with the files that define it. */
function typesOf(services: readonly ServiceDefinition[]): PackageDefinition {
  const methods = services.flatMap(service => Object.values(service));
  return Object.fromEntries(methods.map(({ path, requestType }) => [path, requestType]));
}

/** The service name in the path of a method. */
function nameOf(service: ServiceDefinition): string {
  return Object.values(service)[0]?.path.split('/')[1] ?? '';
}
