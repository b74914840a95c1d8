import type { AssignedLocality, Assignment } from '../traffic/assignment.ts';
import { edited, mapped } from './edit.ts';
import type { Edit } from './edit.ts';
import { encodeEndpoints, regionOf } from './endpoints.ts';
import { LocalitySchema } from './proto/envoy/config/core/v3_pb.ts';
import {
  ClusterLoadAssignmentSchema,
  LocalityLbEndpointsSchema,
} from './proto/envoy/config/endpoint/v3_pb.ts';
import { bytesField, bytesOf, textOf, varintField } from './wire.ts';

const { endpoints: LOCALITIES } = ClusterLoadAssignmentSchema.field;
const { lbEndpoints: ENDPOINTS, locality: LOCALITY, priority: PRIORITY } = LocalityLbEndpointsSchema.field;

/**
 * The bytes of a ClusterLoadAssignment with the localities filled that stand for our backends; those of others keep
 * their bytes. What Envoy Gateway made of a backend, its weight above all, holds for all its priorities.
 */
export function fillLocalities(assignment: Uint8Array, assigned: Assignment): Uint8Array {
  const backends = byRegion(assigned);
  const filled = new Set<string>();
  return mapped(assignment, LOCALITIES.number, value => {
    const region = regionIn(value);
    const localities = region === undefined ? undefined : backends.get(region);
    if (region === undefined || !localities) return undefined;
    if (filled.has(region)) return [];
    filled.add(region);
    return withPriorities(value, localities);
  });
}

function byRegion({ cluster, localities }: Assignment): ReadonlyMap<string, readonly AssignedLocality[]> {
  const regions = new Map<string, AssignedLocality[]>();
  for (const locality of localities) {
    const region = regionOf(cluster, locality.backend);
    regions.set(region, [...(regions.get(region) ?? []), locality]);
  }
  return regions;
}

function regionIn(locality: Uint8Array): string | undefined {
  const name = bytesOf(locality, LOCALITY.number);
  return name && textOf(name, LocalitySchema.field.region.number);
}

/** What Envoy Gateway made has priority 0; it stays first, if only empty, and is filled again the next time. */
function withPriorities(made: Uint8Array, localities: readonly AssignedLocality[]): readonly Uint8Array[] {
  const first = localities.find(({ priority }) => priority === 0);
  const others = localities.filter(({ priority }) => priority > 0);
  return [
    edited(made, [endpointsEdit(first)]),
    ...others.map(locality => edited(made, [endpointsEdit(locality), priorityEdit(locality)])),
  ];
}

function endpointsEdit(locality: AssignedLocality | undefined): Edit {
  const endpoints = locality ? encodeEndpoints(locality) : [];
  const fields = endpoints.map(endpoint => bytesField(ENDPOINTS.number, endpoint));
  return { number: ENDPOINTS.number, replaces: () => true, fields };
}

function priorityEdit({ priority }: AssignedLocality): Edit {
  const fields = [varintField(PRIORITY.number, priority)];
  return { number: PRIORITY.number, replaces: () => true, fields };
}
