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

/** Events that are written at once: a namespace whose writes have to wait takes half of them. */
export const MAX_EVENT_WRITES = 4;

/** A namespace may take one part of this many of the relay ports of a tailnet, so that eight of them can have all they may. */
export const RELAY_PORT_SHARES = 8;
