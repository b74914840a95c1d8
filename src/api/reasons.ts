import type { Declaration } from './reasons/declare.ts';
import { INSTALLATION } from './reasons/installation.ts';
import { MESH_ENDPOINTS } from './reasons/mesh-endpoints.ts';
import { MESH_GATEWAY } from './reasons/mesh-gateway.ts';
import { MESH_TAILNET } from './reasons/mesh-tailnet.ts';
import { OBJECTS } from './reasons/objects.ts';

export type { Severity } from './reasons/declare.ts';

/** Every reason by where it is: a kind with a condition or a list of its status, objects and files, or a log. */
export const PLACES = {
  ...MESH_ENDPOINTS,
  ...MESH_TAILNET,
  ...MESH_GATEWAY,
  ...OBJECTS,
  ...INSTALLATION,
} as const;

type Places = typeof PLACES;

/** Where a reason is. */
export type Place = keyof Places;

/** The reasons that a place can have. */
export type ReasonAt<P extends Place> = P extends unknown ? keyof Places[P] & string : never;

/** Why something is as it is, for machines. */
export type Reason = ReasonAt<Place>;

/** Why a backendRef, or an endpoint of the object that it names, gets no traffic. */
export type UnusedReason = Exclude<ReasonAt<'MeshEndpoints RoutesResolved'>, 'Resolved' | 'NoRoutes'>;

/** Every reason, as it is declared at its first place: at others it may matter less. */
export const REASONS = Object.assign({}, ...Object.values(PLACES).reverse()) as Readonly<
  Record<Reason, Declaration>
>;
