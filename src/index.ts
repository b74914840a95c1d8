/** The library: the kinds, their types and their validators, and routes to them. */
export { formatFault } from './api/validation/fault.ts';
export type { Fault } from './api/validation/fault.ts';
export { API_VERSION, GROUP, kinds, VERSION } from './api/generated/kinds.ts';
export type { KindName } from './api/generated/kinds.ts';
export type * as authored from './api/generated/authored.ts';
export type * from './api/generated/types.ts';
export { unknownFields } from './api/validation/unknown-fields.ts';
export type { UnknownField } from './api/validation/unknown-fields.ts';
export { validate } from './api/validation/validate.ts';
export type { Verdict } from './api/validation/validate.ts';
export { AuthoringError } from './typed-routes/authoring-error.ts';
export { backend } from './typed-routes/backend.ts';
export type { BackendOptions, MeshBackendRef } from './typed-routes/backend.ts';
export { grpcRoute } from './typed-routes/grpc-route.ts';
export type * from './typed-routes/grpc-route.ts';
export { httpRoute } from './typed-routes/http-route.ts';
export type * from './typed-routes/http-route.ts';
export { meshEndpoints } from './typed-routes/mesh-endpoints.ts';
export type { DeclaredMeshEndpoints, MeshEndpointsProps } from './typed-routes/mesh-endpoints.ts';
export { referenceGrant } from './typed-routes/reference-grant.ts';
export type {
  ReferenceGrant,
  ReferenceGrantProps,
  RoutesOfNamespace,
} from './typed-routes/reference-grant.ts';
export type * from './typed-routes/route.ts';
export { tcpRoute, tlsRoute, udpRoute } from './typed-routes/stream-routes.ts';
export type * from './typed-routes/stream-routes.ts';
