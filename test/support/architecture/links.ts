import { posix } from 'node:path';
import type { TextFile, Violations } from './source.ts';

/** A link of Markdown to a file, a heading, or both; those to other hosts are not checked. */
const LINK = /\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g;

/** Every link of a page leads to a file or folder that exists, and to a heading that the page has. */
export function linksResolve(files: readonly TextFile[]): Violations {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const folders = new Set(files.flatMap(({ path }) => foldersAbove(path)));
  const faultOf = (page: string, target: string, heading: string | undefined): string | undefined => {
    const path = target === '' ? page : posix.normalize(posix.join(posix.dirname(page), target));
    const text = texts.get(path);
    if (text === undefined && !folders.has(path.replace(/\/$/, ''))) return `${path} does not exist`;
    if (heading === undefined || headingsOf(text ?? '').includes(heading)) return undefined;
    return `${path} has no heading #${heading}`;
  };
  return files
    .filter(({ path }) => path.endsWith('.md'))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) =>
        [...line.matchAll(LINK)].flatMap(([, target = '', heading]) => {
          const fault = faultOf(path, target, heading);
          return fault === undefined ? [] : [`${path}:${index + 1}: ${fault}: correct the link`];
        }),
      ),
    );
}

function foldersAbove(path: string): readonly string[] {
  const folder = posix.dirname(path);
  return folder === '.' ? [] : [folder, ...foldersAbove(folder)];
}

/** The names under which headings are linked to. */
function headingsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );
}
