/*
 * What one namespace may take of what all namespaces share; docs/limits.md has a row for each, with the reason and where a
 * user sees that it is reached. Nothing here is first come, first served.
 */
