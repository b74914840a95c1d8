/** Variables as lines that a shell can evaluate; what it would take for more than text is in quotes. */
export function assignments(variables: readonly (readonly string[])[]): readonly string[] {
  return variables.map(([name = '', value = '']) => `${name}=${quoted(value)}`);
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
