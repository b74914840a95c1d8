import { basename, dirname, sep } from 'node:path';
import { isRecord } from '../../api/json.ts';
import type { Problem } from '../../api/problem.ts';
import { readDocuments } from '../../api/yaml-documents.ts';
import type { SourceFile } from './objects.ts';

/** What in a kustomization makes other objects of those in its files, or of files that are no whole objects. */
const CHANGES = [
  ...['patches', 'patchesStrategicMerge', 'patchesJson6902', 'components', 'replacements', 'transformers'],
  ...['namePrefix', 'nameSuffix'],
] as const;

/** A folder whose files kustomize makes other objects of, and that this is so. */
export type Unrendered = {
  readonly folder: string;
  readonly file: string;
  readonly problem: Problem;
};

/** Finds folders whose objects only kustomize knows. */
export function unrenderedIn(files: readonly SourceFile[]): readonly Unrendered[] {
  return files
    .filter(({ name }) => /^kustomization\.ya?ml$/.test(basename(name)))
    .flatMap(({ name, text }) => {
      const documents = readDocuments(text)
        .documents.map(({ value }) => value)
        .filter(isRecord);
      const found = CHANGES.find(field => documents.some(each => each[field] !== undefined));
      if (found === undefined) return [];
      const folder = dirname(name);
      const what = `this folder is for kustomize, whose ${found} make other objects of its files, which are not checked`;
      const fix = `render it first: kustomize build ${folder} | mesh-gateway check -`;
      const problem = { reason: 'NotRendered', at: [found], text: what, fix } as const;
      return [{ folder, file: name, problem }];
    });
}

/** Whether a file is in a folder, or below it. */
export function isBelow({ folder }: Unrendered, { name }: SourceFile): boolean {
  return folder === '.' ? !name.startsWith('..') : name.startsWith(`${folder}${sep}`);
}
