/** Must be raised whenever equal settings are encoded as other bytes, or routes are edited in another way: it moves the revision, so that Envoy Gateway translates. */
export const ENCODING_VERSION = 10;

/** What the clusters of all Gateways have in common: how they are encoded, and where Envoy gets their endpoints. */
export function clusterEncoding(edsTarget: string): string {
  return `${ENCODING_VERSION} ${edsTarget}`;
}
