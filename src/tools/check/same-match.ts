import { isRecord, recordOf } from '../../api/json.ts';
import { keyOf } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshRoute, refTo } from '../../api/objects/references.ts';
import { attachmentsOf } from '../../traffic/attachments.ts';
import { byAge } from '../route-age.ts';
import { titleOf } from './objects.ts';
import type { Catalog, Declared, Finding } from './objects.ts';

/** Notes rules of two HTTPRoutes that match the same requests, which all go to the one that comes first. */
export function noteSameMatches(routes: readonly Declared[], catalog: Catalog): readonly Finding[] {
  const first = new Map<string, Declared>();
  return [...routes]
    .sort((one, other) => byAge(one.fields, other.fields))
    .flatMap(declared => {
      const { resource, at } = declared;
      if (resource?.kind !== 'HTTPRoute' || catalog.get(keyOf(refTo(resource))) !== declared) return [];
      const noted = new Map<number, Route>();
      for (const { id, rule } of matchesOf(declared, catalog)) {
        const other = first.get(id);
        if (!other) first.set(id, declared);
        else if (other !== declared && !noted.has(rule) && [other, declared].some(isMesh))
          noted.set(rule, other.resource as Route);
      }
      return [...noted].map(([rule, other]) => {
        const text = `${titleOf(other)} matches the same requests at the same listener, and gets all of them`;
        const fix = 'change hostnames or matches of one, or make them rules of one route';
        return at({ reason: 'SameMatch', at: ['spec', 'rules', rule], text, fix });
      });
    });
}

function isMesh({ resource }: Declared): boolean {
  return isMeshRoute(resource as Route);
}

/** Each match of each rule, for each hostname at each listener. */
function matchesOf({ fields, resource }: Declared, catalog: Catalog) {
  const route = resource as Route;
  const listeners = attachmentsOf(route, catalog.attachmentResources).flatMap(({ parent, listeners: all }) =>
    all.map(({ name }) => `${titleOf(parent)} ${name}`),
  );
  const hostnames = route.hostnames.length === 0 ? ['*'] : route.hostnames;
  const { rules } = recordOf(fields['spec']);
  const written = Array.isArray(rules) ? rules.filter(isRecord) : [];
  return written.flatMap(({ matches }, rule) => {
    const all = Array.isArray(matches) && matches.length > 0 ? (matches as readonly unknown[]) : [{}];
    return all.flatMap(match =>
      hostnames.flatMap(hostname =>
        listeners.map(listener => ({ rule, id: `${listener} ${hostname} ${normalized(match)}` })),
      ),
    );
  });
}

/** A match with its defaults. */
function normalized(match: unknown): string {
  const { path, method, headers = [], queryParams = [] } = recordOf(match);
  const { type = 'PathPrefix', value = '/' } = recordOf(path);
  return JSON.stringify([type, value, method, headers, queryParams]);
}
