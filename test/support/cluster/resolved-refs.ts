import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForObject } from '../../../lab/kube/wait.ts';
import type { RouteKind } from '../../../src/api/key.ts';
import { GATEWAY_GROUP } from '../../../src/api/objects/gateway-api.ts';

type Parents = { readonly parents?: readonly { readonly conditions: readonly Condition[] }[] };
type Condition = { readonly type: string; readonly status: string; readonly reason: string };

/** ResolvedRefs of a route at its first Gateway, as its status and reason. */
export function resolvedRefsOf({ status }: KubeObject): string | undefined {
  const [parent] = (status as Parents | undefined)?.parents ?? [];
  const found = parent?.conditions.find(({ type }) => type === 'ResolvedRefs');
  return found && `${found.status} ${found.reason}`;
}

/** A reference to a route. */
export function refToRoute(kind: RouteKind, namespace: string, name: string) {
  return { apiVersion: `${GATEWAY_GROUP}/v1`, kind, namespace, name };
}

/** Waits until ResolvedRefs of a route is as expected, such as `True ResolvedRefs`. */
export async function waitForResolvedRefs(
  client: KubeClient,
  route: ReturnType<typeof refToRoute>,
  expected: string,
): Promise<void> {
  const isExpected = (object: KubeObject) => resolvedRefsOf(object) === expected;
  await waitForObject(client, route, `to have ResolvedRefs ${expected}`, isExpected);
}
