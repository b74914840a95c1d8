import { refOf, ROUTE_KINDS } from '../../src/api/key.ts';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { refTo } from '../../src/api/objects/references.ts';
import type { ReadResources } from '../../src/store/resources.ts';
import { Tracking } from '../../src/store/tracking.ts';
import { everythingIn } from '../../src/tools/check/known.ts';
import type { Declared } from '../../src/tools/check/objects.ts';
import { routeText, routeTracer, straysIn, strayText } from '../../src/tools/trace/routes.ts';
import type { Screen } from '../screen.ts';

const DEBOUNCE_MS = 100;

/**
 * Shows each route that has MeshEndpoints among its backends, or is meant to, with its endpoints, and follows changes: redrawn in place
 * on a terminal, elsewhere a route is printed again when it changes. Returns the function that stops it.
 */
export function showRoutes(read: ReadResources, screen: Screen): () => void {
  const tracking = new Tracking(read);
  const traced = routeTracer(tracking, {}, everythingIn(read));
  let shown: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const show = () => {
    const routes = [
      ...traced().map(route => routeText(route)),
      ...straysOf(read).map(stray => strayText(stray)),
    ];
    const texts = routes.length > 0 ? routes : ['no route has MeshEndpoints among its backends'];
    screen.draw('routes', `\n${texts.join('\n')}`);
    if (!screen.isTerminal)
      for (const text of texts.filter(text => !shown.includes(text))) screen.print(`\n${text}`);
    shown = texts;
  };
  show();
  const unsubscribe = read.subscribe(() => {
    clearTimeout(timer);
    timer = setTimeout(show, DEBOUNCE_MS);
  });
  return () => {
    unsubscribe();
    tracking.close();
    clearTimeout(timer);
  };
}

function straysOf(read: ReadResources) {
  const routes = ROUTE_KINDS.flatMap((kind): readonly Route[] => read.list(kind));
  return straysIn(routes.map(asDeclared), { get: key => read.get(refOf(key)) });
}

/** A route as straysIn reads it, which needs its backendRefs and annotations as they are written. */
function asDeclared(route: Route): Declared {
  const { metadata, rules } = route;
  return {
    fields: { metadata, spec: { rules } },
    resource: route,
    at: problem => ({ ...problem, about: refTo(route) }),
  };
}
