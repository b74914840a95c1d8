/**
 * Rows of the contract whose feature is not built yet, each with the feature. This list only shrinks: remove a row with
 * the feature, and lower the number.
 */
export const NOT_BUILT: Readonly<Record<string, readonly string[]>> = {
  MeshGateway: [
    'MeshGateway: spec.serviceCoordination.enabled',
    'MeshGateway: spec.serviceCoordination.strategy',
    'MeshGateway: annotation {api_group}/force-cleanup',
    'Metric names: service_coordinator_services_total',
    'Metric names: service_coordinator_registrations_total',
  ],
};

/** The number of rows in the list. */
export const ROWS_NOT_BUILT = 5;
