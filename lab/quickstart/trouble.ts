/** What a line of the log says to people who only want to know what is wrong; nothing where nothing is. */
export function troubleIn(line: string): string | undefined {
  const { level, msg, object, file, line: at, why, error } = JSON.parse(line) as Record<string, unknown>;
  if (level !== 'warn' && level !== 'error') return undefined;
  const place = [object, file, at].filter(isSaid).map(String).join(':');
  const reason = why ?? (error as { readonly message?: unknown } | undefined)?.message;
  return [msg, place, reason].filter(isSaid).map(String).join(': ');
}

function isSaid(part: unknown): boolean {
  return part !== undefined && part !== '';
}
