/** A setting, as a page or the help of a command shows it. */
type ShownSetting = {
  readonly name: string | undefined;
  readonly flag: string | undefined;
  readonly preset: string;
  readonly what: string | undefined;
};

/** The settings in the tables of a page. */
export function settingsInPage(text: string): readonly ShownSetting[] {
  const rows = text.matchAll(/^\| `([A-Z_]+)` *\| `(--[-a-z]+)` *\| (?:`([^`]*)`)? *\| (.*?) *\|$/gm);
  return [...rows].map(([, name, flag, preset = '', what]) => ({ name, flag, preset, what }));
}

/** The settings in the help of a command. */
export function settingsInHelp(help: string): readonly ShownSetting[] {
  const found = help.matchAll(/^ {2}(--[-a-z]+) +([A-Z_]+)((?:\n {6}.*)+)$/gm);
  return [...found].map(([, flag, name, lines = '']) => {
    const text = lines.replaceAll(/\s+/g, ' ').trim();
    const [, what, preset = ''] = /^(.*?)(?: \(default ([^()]+)\))?$/.exec(text) ?? [];
    return { name, flag, preset, what };
  });
}
