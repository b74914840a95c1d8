const compiled = new Map<string, RegExp>();

/** A pattern of the API server, which evaluates it with RE2, for JavaScript. */
export function patternOf(pattern: string): RegExp {
  const known = compiled.get(pattern);
  if (known) return known;
  const made = compile(SAFE[pattern] ?? pattern);
  compiled.set(pattern, made);
  return made;
}

/** Flags in a pattern are an error in JavaScript of Node 20: those in front of all count for all. */
function compile(pattern: string): RegExp {
  const [, before = '', flags, after = ''] = /^(\^?)\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? [];
  const source = flags === undefined ? pattern : before + after;
  try {
    return new RegExp(source, `u${flags ?? ''}`);
  } catch {
    return new RegExp(source, flags);
  }
}

/** Patterns on which JavaScript, other than RE2, would take forever with some texts, and what matches the same. */
const SAFE: Readonly<Record<string, string>> = {
  '^(\\*|[A-Za-z][A-Za-z0-9+.-]*:\\/\\/(\\*|(\\*\\.)?(([\\w-]+\\.?)+)?[\\w-]+)(:\\d{1,5})?)$':
    '^(\\*|[A-Za-z][A-Za-z0-9+.-]*:\\/\\/(\\*|(\\*\\.)?([\\w-]+\\.)*[\\w-]+)(:\\d{1,5})?)$',
  '^[!-~]+([\\t ]?[!-~]+)*$': '^[!-~]+([\\t ][!-~]+)*$',
};
