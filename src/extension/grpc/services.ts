import { create, toBinary } from '@bufbuild/protobuf';
import type { DescFile } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader';
import type { AnyDefinition, PackageDefinition, ServiceDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import type { Server } from '@grpc/grpc-js';

/** Whether calls are answered. */
type ServingStatus = 'SERVING' | 'NOT_SERVING';

/** The health that callers see, of the server (the empty name) and of each service alike. */
export interface Health {
  /** Notifies all who watch. */
  set(status: ServingStatus): void;
}

/** Serves health, NOT_SERVING at first, and reflection: on the services that files define, and on these two themselves. */
export function addHealthAndReflection(server: Server, files: readonly DescFile[]): Health {
  const health = new HealthImplementation();
  const services = Object.values(loadFileDescriptorSetFromBuffer(descriptorSet(files))).filter(isService);
  // Both bring their own definitions, and only add them to a server.
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

/** The files as they were in proto/, with all that they import: generated code has them. */
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

/** The types of requests, each of which brings the files that it is defined with. */
function typesOf(services: readonly ServiceDefinition[]): PackageDefinition {
  const methods = services.flatMap(service => Object.values(service));
  return Object.fromEntries(methods.map(({ path, requestType }) => [path, requestType]));
}

/** The name of a service is in the path of each of its methods. */
function nameOf(service: ServiceDefinition): string {
  return Object.values(service)[0]?.path.split('/')[1] ?? '';
}
