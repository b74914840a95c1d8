import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHECK_HELP, runCheck } from '../../src/tools/check/command.ts';
import { programPath } from '../support/programs/programs.ts';
import { runHere } from '../support/tools/run-here.ts';
import type { Run } from '../support/tools/run-here.ts';

const cli = programPath('src/cli.ts');
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };

let folder = '';

/** Runs `mesh-gateway` with these arguments in the folder of this test. */
async function run(args: readonly string[], input = ''): Promise<Run> {
  const child = spawn(process.execPath, [cli, ...args], { cwd: folder });
  child.stdin.end(input);
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  const [out, err, status] = await Promise.all([readAll(child.stdout), readAll(child.stderr), ended]);
  return { status, out, err };
}

const GOOD = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata: {name: example}
spec: {tailnet: example.ts.net}
`;
const BAD = GOOD.replace('example.ts.net', 'Example.ts.net').replace('name: example', 'name: bad');
const ODD = GOOD.replace('tailnet: example.ts.net', 'colour: red, tailnet: odd.ts.net').replace(
  'name: example',
  'name: odd',
);

const FAULT =
  'error: spec.tailnet: "Example.ts.net" is not the domain of a tailnet in lower case, such as example.ts.net: `tailscale status --json` on a device has it as MagicDNSSuffix';
const WARNING = 'warning: spec.colour: is not a field of MeshTailnet and is dropped by the API server';

const NOTE =
  'spec.tagSelectors: which devices match is known in the tailnet alone: once it is applied, status.endpoints lists them';
const SELECTING = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata: {name: web}
spec: {tailnet: example.ts.net, tagSelectors: [{key: web, operator: Exists}]}
`;

const FILES: Readonly<Record<string, string>> = {
  'good.yaml': GOOD,
  'bad.yaml': BAD,
  'odd.yaml': ODD,
  'selecting.yaml': SELECTING,
  'broken.yaml': 'a: [\n',
  'away.yaml': `apiVersion: v1
kind: Config
current-context: away
contexts: [{name: away, context: {cluster: away, user: away}}]
clusters: [{name: away, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: away, user: {token: none}}]
`,
  'foreign.yaml': 'apiVersion: v1\nkind: Secret\n',
  'several.yaml': `${GOOD}---\n${BAD}---\n${ODD}`,
  'folder/b.yml': BAD,
  'folder/a/good.json': JSON.stringify({ apiVersion: 'v1', kind: 'Secret' }),
  'folder/a/good.yaml': GOOD,
  'folder/README.md': BAD,
  'folder/notes.txt': 'a: [',
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mesh-gateway-check-'));
  await mkdir(join(folder, 'folder/a'), { recursive: true });
  await mkdir(join(folder, 'empty'));
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, name), text)));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** An output without columns, excerpts and reasons. */
function linesOf(out: string): string {
  return out
    .split('\n')
    .filter(line => !/^ *\d* \| /.test(line))
    .map(line => line.replace(/:\d+: (?=error|warning|note)/, ': ').replace(/ \[\w+\]$/, ''))
    .join('\n');
}

/** Arguments, the expected standard output, the last line of standard error, and the exit code. */
type Row = readonly [sentence: string, args: readonly string[], out: string, err: string, status: number];

const NOTHING =
  'note: there is no object of mesh-gateway.dev or Gateway API: name the files, which end in .yaml, .yml or .json, or the cluster that has them\n';

const JUDGED: readonly Row[] = [
  ['a valid object', ['good.yaml'], '', '1 object in 1 file: 0 errors, 0 warnings, 0 notes', 0],
  [
    'an invalid object',
    ['bad.yaml'],
    `bad.yaml:4: ${FAULT}\n`,
    '1 object in 1 file: 1 error, 0 warnings, 0 notes',
    1,
  ],
  [
    'a warning',
    ['odd.yaml'],
    `odd.yaml:4: ${WARNING}\n`,
    '1 object in 1 file: 0 errors, 1 warning, 0 notes',
    1,
  ],
  [
    'a warning, strictly',
    ['--strict', 'odd.yaml'],
    `odd.yaml:4: ${WARNING.replace('warning', 'error')}\n`,
    '1 object in 1 file: 1 error, 0 warnings, 0 notes',
    1,
  ],
  [
    'a valid object, strictly',
    ['good.yaml', '--strict'],
    '',
    '1 object in 1 file: 0 errors, 0 warnings, 0 notes',
    0,
  ],
  [
    'a note, which is no fault, strictly',
    ['--strict', 'selecting.yaml'],
    `selecting.yaml:4: note: ${NOTE}\n`,
    '1 object in 1 file: 0 errors, 0 warnings, 1 note',
    0,
  ],
  ['an object of others', ['foreign.yaml'], NOTHING, '0 objects in 1 file: 0 errors, 0 warnings, 1 note', 0],
  [
    'several documents',
    ['several.yaml'],
    `several.yaml:9: ${FAULT}\nseveral.yaml:14: ${WARNING}\n`,
    '3 objects in 1 file: 1 error, 1 warning, 0 notes',
    1,
  ],
  [
    'several files',
    ['good.yaml', 'bad.yaml', 'odd.yaml'],
    `bad.yaml:4: ${FAULT}\nodd.yaml:4: ${WARNING}\n`,
    '3 objects in 3 files: 1 error, 1 warning, 0 notes',
    1,
  ],
  [
    'the YAML and JSON files of a folder',
    ['folder'],
    `folder/b.yml:4: ${FAULT}\n`,
    '2 objects in 3 files: 1 error, 0 warnings, 0 notes',
    1,
  ],
  ['an empty folder', ['empty'], NOTHING, '0 objects in 0 files: 0 errors, 0 warnings, 1 note', 0],
  [
    'a file that is no YAML',
    ['broken.yaml'],
    'broken.yaml:2: error: the indentation does not fit what is around it, or a bracket is not closed\n',
    '0 objects in 1 file: 1 error, 0 warnings, 0 notes',
    1,
  ],
];

describe('mesh-gateway check', () => {
  const help = { name: 'check', help: CHECK_HELP };

  it.each(JUDGED)('checks %s', async (_sentence, args, out, err, status) => {
    const result = await runHere(folder, () => runCheck(args, {}), help);
    expect({ ...result, out: linesOf(result.out) }).toEqual({ out, err: `${err}\n`, status });
  });

  it('prints the same as a process', async () => {
    const args = ['good.yaml', 'bad.yaml', 'odd.yaml'];
    expect(await run(['check', ...args])).toEqual(await runHere(folder, () => runCheck(args, {}), help));
  });

  it('checks standard input', async () => {
    const result = await run(['check', '-'], BAD);
    expect(linesOf(result.out)).toBe(`standard input:4: ${FAULT}\n`);
    expect(result.status).toBe(1);
  });
});

describe.concurrent('the output of mesh-gateway', () => {
  it('may be closed before all is written, as head does', async () => {
    await writeFile(join(folder, 'many.txt'), `${BAD}---\n`.repeat(900));
    const args = [cli, 'check', 'many.txt', 'bad.yaml'];
    const child = spawn(process.execPath, args, { cwd: folder });
    child.stdout.once('data', () => child.stdout.destroy());
    const ended = new Promise<number | null>(resolve => child.once('close', resolve));
    const [err, status] = await Promise.all([readAll(child.stderr), ended]);
    expect({ err, status }).toEqual({
      err: '901 objects in 2 files: 901 errors, 0 warnings, 0 notes\n',
      status: 1,
    });
  });

  it.runIf(existsSync('/dev/full'))('is reported where the disk is full', async () => {
    const child = spawn('sh', ['-c', `"$0" "$1" check bad.yaml >/dev/full`, process.execPath, cli], {
      cwd: folder,
    });
    const ended = new Promise<number | null>(resolve => child.once('close', resolve));
    const [err, status] = await Promise.all([readAll(child.stderr), ended]);
    expect(err).toContain('mesh-gateway: the output cannot be written: ENOSPC\n');
    expect(status).toBe(2);
  });
});

const MISUSED: readonly (readonly [sentence: string, args: readonly string[], err: RegExp])[] = [
  ['a file that is not there', ['check', 'none.yaml'], /^mesh-gateway: none\.yaml does not exist\n$/],
  [
    'a file that is not there beside one that is',
    ['check', 'good.yaml', 'none.yaml'],
    /^mesh-gateway: none\.yaml does not exist\n$/,
  ],
  [
    'an unknown flag',
    ['check', '--fix', 'good.yaml'],
    /^mesh-gateway: check: --fix: there is no such flag; see --help\n$/,
  ],
  [
    'a misspelt flag',
    ['check', '--srict', 'good.yaml'],
    /^mesh-gateway: check: --srict: there is no such flag; did you mean --strict\?\n$/,
  ],
  [
    'a letter of kubectl',
    ['check', '-o', 'json'],
    /^mesh-gateway: check: -o: there is no such flag; did you mean --output\?\n$/,
  ],
  [
    'files as kubectl has them',
    ['check', '-f', 'good.yaml'],
    /: check: -f: .*; name files and folders without a flag\n$/,
  ],
  ['a folder as kubectl has it', ['trace', '--all', '-f', '.'], /: trace: -f: .*; did you mean --file\?\n$/],
  [
    'a file without its flag',
    ['trace', '--all', 'good.yaml'],
    /: trace: --all .*; files and folders follow --file\n$/,
  ],
  ['a file after a URL', ['trace', 'http://a/', 'good.yaml'], /: trace: only one URL .* follow --file\n$/],
  [
    'a flag without its value',
    ['check', 'good.yaml', '--output'],
    /^mesh-gateway: check: --output: needs a value after it\n$/,
  ],
  [
    'a value of a switch',
    ['check', '--strict=yes', 'good.yaml'],
    /^mesh-gateway: check: --strict: takes no value\n$/,
  ],
  [
    'an argument of a command without any',
    ['doctor', 'web'],
    /^mesh-gateway: doctor: "web": there are only flags; see --help\n$/,
  ],
  [
    'a configuration that is not there',
    ['synth', '--config', 'none.yaml', '--out', 'a'],
    /^mesh-gateway: synth: none\.yaml does not exist\n$/,
  ],
  ['a misspelt command', ['chekc'], /^mesh-gateway: there is no command "chekc"; did you mean check\?\n$/],
  [
    'an unknown command',
    ['apply'],
    /^mesh-gateway: there is no command "apply"; mesh-gateway help lists them\n$/,
  ],
  ['help on a misspelt command', ['help', 'tarce'], /^mesh-gateway: .* did you mean trace\?\n$/],
  ...(
    [
      [['check'], 'give files: mesh-gateway check FOLDER'],
      [['trace', '--all'], 'give files: mesh-gateway trace --file FOLDER'],
      [['trace', 'http://a/'], 'give files: mesh-gateway trace --file FOLDER'],
      [['status'], 'check only objects in files: mesh-gateway check FOLDER'],
      [['doctor'], 'check only objects in files: mesh-gateway check FOLDER'],
    ] as const
  ).map(
    ([args, instead]) =>
      [
        `${args.join(' ')} without a cluster`,
        [...args, '--kubeconfig', 'none'],
        new RegExp(
          `^mesh-gateway: KUBECONFIG: none cannot be read \\(ENOENT\\): name a cluster with --kubeconfig and --context, or ${instead}\n$`,
        ),
      ] as const,
  ),
  [
    'a cluster that does not answer',
    ['check', '--kubeconfig', 'away.yaml'],
    /: ECONNREFUSED: .*: name a cluster with --kubeconfig and --context, or give files: mesh-gateway check FOLDER\n$/,
  ],
  ['a path with control characters', ['check', 'a\u001b[2J'], /^mesh-gateway: a\?\[2J does not exist\n$/],
  ['no command', [], /^mesh-gateway sends .*\n\nUsage: mesh-gateway <command>\n/],
];

const ASKED: readonly (readonly [args: readonly string[], out: RegExp])[] = [
  [['help'], /^mesh-gateway sends .*\n\nUsage: mesh-gateway <command>\n/],
  [['--help'], /^mesh-gateway sends /],
  [['-h'], /^mesh-gateway sends /],
  [['check', '-h'], /^mesh-gateway check \[options\] \[PATH\.\.\.\]\n/],
  [['help', 'check'], /^mesh-gateway check \[options\] \[PATH\.\.\.\]\n[^]*Exit status: 0 .*, 1 .*, 2 /],
  [['version'], new RegExp(`^${version.replaceAll('.', '\\.')}\n$`)],
  [['--version'], new RegExp(`^${version.replaceAll('.', '\\.')}\n$`)],
  [['-v'], new RegExp(`^${version.replaceAll('.', '\\.')}\n$`)],
];

describe.concurrent('mesh-gateway', () => {
  it.each(MISUSED)('exits with 2 and an error on %s', async (_sentence, args, err) => {
    const result = await run(args);
    expect(result).toMatchObject({ out: '', status: 2 });
    expect(result.err).toMatch(err);
  });

  it.each(ASKED)('%j exits with 0', async (args, out) => {
    const result = await run(args);
    expect(result).toMatchObject({ err: '', status: 0 });
    expect(result.out).toMatch(out);
  });
});
