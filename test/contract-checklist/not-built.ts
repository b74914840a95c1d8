/**
 * Rows of the contract whose feature is not built yet, each with the feature. This list only shrinks: remove a row with
 * the feature, and lower the number.
 */
export const NOT_BUILT: Readonly<Record<string, readonly string[]>> = {
  MeshGateway: ['MeshGateway: annotation {api_group}/force-cleanup'],
};

/** The number of rows in the list. */
export const ROWS_NOT_BUILT = 1;
