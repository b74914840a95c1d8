/** How clusters are made of what they need: higher by one whenever the same needs make other bytes. */
export const SHAPE_VERSION = 5;

/** What all clusters have in common that are made to get their endpoints from `edsTarget`, as a text. */
export function clusterShape(edsTarget: string): string {
  return `${SHAPE_VERSION} ${edsTarget}`;
}
