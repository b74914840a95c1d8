/** The groups of notes, in their order, and how an entry of CHANGELOG.md begins that belongs to one. */
const GROUPS = [
  ['Breaking', 'Breaking: '],
  ['Security', 'Security: '],
  ['Features', ''],
  ['Fixes', 'Fixed: '],
  ['Performance', 'Faster: '],
] as const;

/** The notes of a version: its section of CHANGELOG.md by groups, with the part of the product that an entry is about. */
export function notesOf(version: string, changelog: string): string {
  const section = changelog.split(/^## /m).find(text => text.split(/[\s(]/, 1)[0] === version);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section ${version}`);
  const [head = '', ...parts] = section.split(/^### /m);
  const entries = parts.flatMap(part => {
    const [title = '', ...lines] = part.split('\n');
    return `\n${lines.join('\n')}`
      .split('\n- ')
      .slice(1)
      .map(text => ({ title, ...groupOf(text) }));
  });
  const groups = GROUPS.flatMap(([name]) => {
    const own = entries.filter(({ group }) => group === name);
    return own.length === 0 ? [] : [`## ${name}`, own.map(entryText).join('\n')];
  });
  const paragraphs = head.split('\n\n').slice(1).join('\n\n').trim();
  return `${[`# mesh-gateway ${version}`, withoutLinks(paragraphs), ...groups].join('\n\n')}\n`;
}

function groupOf(text: string): { readonly group: string; readonly text: string } {
  const found = GROUPS.find(([, prefix]) => prefix !== '' && text.startsWith(prefix));
  return found ? { group: found[0], text: text.slice(found[1].length) } : { group: 'Features', text };
}

function entryText({ title, text }: { readonly title: string; readonly text: string }): string {
  return `- **${title}**: ${withoutLinks(text.trim())}`;
}

/** Links of the page lead into the repository; those with an address stay. */
function withoutLinks(text: string): string {
  return text.replaceAll(/\[([^\]]+)\]\((?!https:)[^)]+\)/g, '$1');
}

/** The sections of pages that have figures of `npm run bench`. */
export function figuresIn(pages: ReadonlyMap<string, string>): string {
  const sections = [...pages].flatMap(([page, text]) =>
    text
      .split(/^(?=#{1,3} )/m)
      .filter(section => section.includes('npm run bench') && /^\|/m.test(section))
      .map(section => `${section.replace(/^#+ (.*)/, `## $1 (${page})`).trim()}\n`),
  );
  return ['# Figures\n', ...sections].join('\n');
}
