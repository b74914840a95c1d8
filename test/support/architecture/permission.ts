/**
 * What may be imported: `src/api/` is a folder with all below it, `src/control/control.ts` a file, and * stands for
 * any part of a name. As `{ types }` it may be named by `import type` only.
 */
export type Permission = string | { readonly types: string };

/** Whether a name is the one that a pattern means, or lies in the folder that it means. */
export function matches(pattern: string, name: string): boolean {
  const escaped = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*');
  return new RegExp(pattern.endsWith('/') ? `^${escaped}` : `^${escaped}$`).test(name);
}

/** Whether one of the permissions covers a name. */
export function isPermitted(permissions: readonly Permission[], name: string, isType: boolean): boolean {
  return permissions.some(permission =>
    typeof permission === 'string' ? matches(permission, name) : isType && matches(permission.types, name),
  );
}

/** The permissions as a message lists them. */
export function listed(permissions: readonly Permission[]): string {
  if (permissions.length === 0) return 'nothing else';
  return permissions
    .map(permission => (typeof permission === 'string' ? permission : `types of ${permission.types}`))
    .join(', ');
}
