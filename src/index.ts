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
export { AuthoringError } from './library/authoring-error.ts';
export { backend } from './library/backend.ts';
export type { BackendOptions, MeshBackendRef } from './library/backend.ts';
export { grpcRoute } from './library/grpc-route.ts';
export type * from './library/grpc-route.ts';
export { httpRoute } from './library/http-route.ts';
export type * from './library/http-route.ts';
export { meshEndpoints } from './library/mesh-endpoints.ts';
export type { DeclaredMeshEndpoints, MeshEndpointsProps } from './library/mesh-endpoints.ts';
export { meshGateway } from './library/mesh-gateway.ts';
export type { AuthoredMeshGateway, MeshGatewayProps } from './library/mesh-gateway.ts';
export { meshRoutePolicy } from './library/mesh-route-policy.ts';
export type {
  AuthoredMeshRoutePolicy,
  BackendNameOf,
  LevelBackend,
  MeshRoutePolicyProps,
  PolicyLevel,
  PolicyTarget,
} from './library/mesh-route-policy.ts';
export { meshTailnet } from './library/mesh-tailnet.ts';
export type { AuthoredMeshTailnet, MeshTailnetProps } from './library/mesh-tailnet.ts';
export { referenceGrant } from './library/reference-grant.ts';
export type { ReferenceGrant, ReferenceGrantProps, RoutesOfNamespace } from './library/reference-grant.ts';
export type * from './library/route.ts';
export { tcpRoute, tlsRoute, udpRoute } from './library/stream-routes.ts';
export type * from './library/stream-routes.ts';
export { toYaml } from './library/to-yaml.ts';
