/** A warning or error of the log as one sentence; undefined for other lines. */
export function warningIn(line: string): string | undefined {
  const { level, msg, object, file, line: at, why, error } = JSON.parse(line) as Record<string, unknown>;
  if (level !== 'warn' && level !== 'error') return undefined;
  const place = [object, file, at].filter(isSet).map(String).join(':');
  const reason = why ?? (error as { readonly message?: unknown } | undefined)?.message;
  return [msg, place, reason].filter(isSet).map(String).join(': ');
}

function isSet(part: unknown): boolean {
  return part !== undefined && part !== '';
}
