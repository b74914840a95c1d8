/*
 * What one namespace may take of what all namespaces share; docs/limits.md has a row for each, with the reason and where a
 * user sees that it is reached. Nothing here is first come, first served.
 */

/**
 * New Events: a burst, and then a rate. A namespace has what was enough for all of them before, and all have
 * ten times that, which an API server does not notice.
 */
export const EVENTS = {
  ofNamespace: { atOnce: 100, perSecond: 1 },
  ofAll: { atOnce: 1000, perSecond: 10 },
} as const;

/** Series of Events in memory, of about 4 KB each: a namespace that is alone gets half of them. */
export const MAX_EVENT_SERIES = 2000;

/** How many reconciles of a controller a namespace has at once while others wait: a status is written in one, however long that takes. */
export function shareOfRuns(concurrency: number): number {
  return Math.ceil(concurrency / 2);
}

/** Events that are written at once: a namespace whose writes have to wait takes half of them. */
export const MAX_EVENT_WRITES = 4;

/** A namespace may take one part of this many of the relay ports of a tailnet, so that eight of them can have all they may. */
export const RELAY_PORT_SHARES = 8;

/** A namespace may have one part of this many of the names of VIP services that one tailnet may have. */
const HELD_SHARES = 8;

/** How many of the names that a tailnet may have are for a namespace: those that it has already stay. */
export function shareOfNames(maxNames: number): number {
  return Math.max(1, Math.floor(maxNames / HELD_SHARES));
}

/** Secrets that the checks of one MeshEndpoints may name: a token for each of its servers, as far as these differ. */
export const SECRETS_OF_OBJECT = 64;

/** What headers of checks may take of one Secret: as much as servers accept in all headers of a request. */
export const SECRET_BYTES = 16 * 1024;

/** How many Secrets are read at once, of which a namespace has at most half: so that others find a free connection. */
export const REFERENCE_READS = 4;

/** How long a read takes its place at least: a namespace reads at most 200 Secrets a second, and the API server notices none. */
export const REFERENCE_READ_MS = 10;

/** How many MeshEndpoints wait for new certificates before their first status: each keeps a place of a reconcile meanwhile. */
export const WAITING_FOR_CA = 2;

/**
 * How long an endpoint that flaps stays unhealthy: each change is a write of its object, which may have 216 KB, and a push
 * to every Envoy.
 */
export const FLAPPING = {
  /** From the second time on that it becomes worse; twice as long each time. */
  firstHoldMs: 1000,
  maxHoldMs: 30_000,
  /** After this time in which it has not become worse it flaps no longer. Much longer than any hold, which it would else outwait. */
  quietMs: 300_000,
} as const;

/** The shortest time between two writes of a status because of health: longer than a write takes, hardly noticed by a user. */
export const HEALTH_WRITE_INTERVAL_MS = 1000;

/** The longest timeout of a health check, as in the schema: a service that hangs takes a place of its namespace for this time. */
export const MAX_CHECK_TIMEOUT_MS = 30_000;

/** MeshEndpoints of a namespace in the anchors of all GatewayClasses: enough for 1,000 L4 routes; each is a line in every log of a translation. */
export const ANCHORED_OF_NAMESPACE = 1024;

/** TLS settings, certificates included, in a response to Envoy Gateway, of 100 MB: the rest has room for 10,000 clusters. */
export const TLS_BYTES = { ofNamespace: 12_000_000, ofAll: 80_000_000 } as const;

/** The ConfigMap `mesh-trust`, which namespaces share equally; what one leaves goes to the others. A ConfigMap may have 1 MiB. */
export const TRUST_BYTES = 900 * 1024;

/** How many ConfigMaps of tls.caRef are read in a second, in turns by namespace. */
export const TRUST_READS = 200;

/**
 * How many bytes of new certificates of a namespace are read in a second, and sixteen times that of ConfigMaps: parsing them
 * takes the process a tenth of a second.
 */
export const TRUST_READ_BYTES = 256 * 1024;

/** Hosts of externalTargets: as many as two objects can have. Each costs a lookup in DNS every 5 seconds at most. */
export const MAX_HOSTS_OF_NAMESPACE = 2000;

/** Lookups at once: a namespace that is alone has 16, as all had before, and one whose hosts are silent takes half at most. */
export const MAX_LOOKUPS = 32;

/**
 * Backends of a Gateway, each a port of a MeshEndpoints, that Envoy does not check because they are in many clusters: enough
 * for 1,000 services. A MeshBinding lists them, 330 KB at most, beside the 7 clusters or more of each in a request to the hook.
 */
export const MAX_CHECKED_BY_OPERATOR = 1024;

/** Endpoints that have a series of their own in the metrics of the operator, and MeshEndpoints with selectors that have one. */
export const MAX_ENDPOINT_SERIES = 1000;

/**
 * The characters of all that the ConfigMap of a tailnet's mesh pods has, which may be 1 MiB: VIP services, 150,000 at most,
 * UDP targets, 540,000 at most, callers, and then destinations.
 */
export const RELAY_DATA_LENGTH = 1_040_000;

/** The UDP targets of a tailnet, however wide the range of relay ports is: with 54 characters each they leave room for the rest. */
export const MAX_RELAY_TARGETS = 10_000;

/** The callers of mesh pods: with up to 25 characters each they fit beside everything else, longer ones usually. */
export const MAX_CALLERS = 10_000;

/** The characters of the destinations of a tailnet's mesh pods, which namespaces share: a device takes about 45. */
export const DESTINATIONS_LENGTH = { least: 100_000, most: 480 * 1024 } as const;
