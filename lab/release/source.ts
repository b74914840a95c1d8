import { execFileSync } from 'node:child_process';

/** What a release is made of. */
export type Source = {
  /** The output of `git status --porcelain`. */
  readonly changes: string;
  /** The tags of the commit. */
  readonly tags: readonly string[];
  /** The version in package.json. */
  readonly version: string;
  readonly changelog: string;
};

/** Why no release can be made, each with its fix. */
export function faultsOfSource({ changes, tags, version, changelog }: Source): readonly string[] {
  const tag = `v${version}`;
  const others = tags.filter(name => /^v\d/.test(name) && name !== tag);
  const changed = changes.split('\n').filter(line => line !== '');
  const shown = changed.slice(0, 5).map(line => line.slice(3));
  const more = changed.length > shown.length ? ` and ${changed.length - shown.length} more` : '';
  return [
    ...(changed.length > 0
      ? [`the working tree is not clean: commit or remove ${shown.join(', ')}${more}`]
      : []),
    ...others.map(
      other => `the tag is ${other}, and package.json has ${version}: change one, so that both are the same`,
    ),
    ...(tags.includes(tag) || others.length > 0 ? [] : [`the commit has no tag: git tag ${tag}`]),
    ...(changelog.includes(`\n## ${version} `) || changelog.includes(`\n## ${version}\n`)
      ? []
      : [`CHANGELOG.md has no section ${version}: add "## ${version}"`]),
  ];
}

/** Runs git in a project. */
export function git(project: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-C', project, ...args], { encoding: 'utf8', maxBuffer: 1e8 });
}
