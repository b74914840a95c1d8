import { otherNameOf } from '../api/other-names.ts';
import { isMap } from './lost-fields.ts';

/** The kinds of routes that Envoy Gateway may have to be shown under another name. */
export const RENAMED_ROUTES: readonly string[] = ['HTTPRoute', 'GRPCRoute'];

/**
 * The spec of a policy that targets routes, also by the other name that each may have: so the policy holds at every
 * moment while a route changes its name. Of a name that no route has Envoy Gateway says nothing.
 */
export function withOtherTargets(spec: unknown): unknown {
  if (!isMap(spec)) return spec;
  const { targetRef, targetRefs, ...rest } = spec;
  const all: readonly unknown[] = Array.isArray(targetRefs) ? targetRefs : [];
  const targets = targetRef === undefined ? all : [targetRef, ...all];
  const others = targets.flatMap(otherTargets);
  return others.length === 0 ? spec : { ...rest, targetRefs: [...targets, ...others] };
}

function otherTargets(target: unknown): readonly object[] {
  if (!isMap(target)) return [];
  const { kind, name } = target;
  if (!RENAMED_ROUTES.includes(String(kind)) || typeof name !== 'string') return [];
  const other = otherNameOf(name, 1);
  return other === undefined ? [] : [{ ...target, name: other }];
}
