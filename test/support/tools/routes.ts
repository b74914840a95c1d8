import { expect } from 'vitest';
import type { Resource } from '../../../src/api/objects/resource.ts';
import { ResourceStore } from '../../../src/store/store.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { everythingIn } from '../../../src/tools/check/known.ts';
import { together } from '../../../src/tools/check/reach.ts';
import type { TrafficSettings } from '../../../src/tools/check/traffic.ts';
import { reachesOf, routeText, routeTracer } from '../../../src/tools/trace/routes.ts';
import { resourceOf } from '../store/resources.ts';

/** The routes among all objects of a cluster as `trace --all` prints them, with how many of their requests reach an endpoint. */
export function tracedRoutes(objects: readonly object[], settings: TrafficSettings = {}) {
  return tracedResources(objects.map(resourceOf), settings);
}

/** The same of objects as they are read. */
export function tracedResources(resources: readonly Resource[], settings: TrafficSettings = {}) {
  const store = new ResourceStore(trafficIndexes, failure => expect(failure).toBeUndefined());
  for (const resource of resources) store.put(resource, true);
  const traced = routeTracer(new Tracking(store), settings, everythingIn(store));
  return traced().map(route => ({
    text: routeText(route),
    reaches: together(reachesOf(route)),
    problems: route.outcome.rules.flatMap(({ problems }) => problems),
  }));
}
