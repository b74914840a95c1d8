import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAMS } from '../cluster/images/contents.ts';
import type { Contents } from '../cluster/images/contents.ts';

const run = promisify(execFile);

/** An architecture as Go, OCI and Debian name it. */
export type Architecture = 'amd64' | 'arm64';

/** A program or a library that is in an image, for its bill of materials. */
export type Software = { readonly name: string; readonly version: string; readonly purl: string };

/** Node with all that it needs, from packages. */
export type NodeFiles = { readonly contents: Contents; readonly software: readonly Software[] };

const PLATFORMS = {
  amd64: { cpu: 'x64', folder: 'x86_64-linux-gnu', loader: 'lib64/ld-linux-x86-64.so.2' },
  arm64: { cpu: 'arm64', folder: 'aarch64-linux-gnu', loader: 'lib/ld-linux-aarch64.so.1' },
} as const;

/** Debian packages of the libraries that Node names, and of the certificates of authorities. */
const DEBIAN = ['libc6', 'libgcc-s1', 'libstdc++6', 'ca-certificates'];

const LIBRARIES = [
  'libc.so.6',
  'libdl.so.2',
  'libgcc_s.so.1',
  'libm.so.6',
  'libpthread.so.0',
  'libstdc++.so.6',
];

/** Downloads Node of an architecture from npm, as pinned for the real parts, and its libraries from Debian. */
export async function nodeFiles(
  project: string,
  architecture: Architecture,
  work: string,
): Promise<NodeFiles> {
  const node = await downloadNode(project, architecture, work);
  const root = join(work, 'root');
  const debian = await downloadDebian(architecture, join(work, 'debian'), root);
  const { loader, folder } = PLATFORMS[architecture];
  const contents = new Map([
    [`${PROGRAMS}/node`, node.binary],
    [`/${loader}`, realpathSync(join(root, loader))],
  ]);
  for (const library of LIBRARIES) {
    const found = ['lib', 'usr/lib']
      .map(place => `${place}/${folder}/${library}`)
      .find(path => existsSync(join(root, path)));
    if (found === undefined)
      throw new Error(`${DEBIAN.join(', ')} of Debian lack ${library}, which Node needs`);
    contents.set(`/${found}`, realpathSync(join(root, found)));
  }
  for (const { name } of debian) {
    const path = `usr/share/doc/${name}/copyright`;
    // Those of GCC link into another package.
    if (existsSync(join(root, path))) contents.set(`/${path}`, realpathSync(join(root, path)));
  }
  contents.set('/etc/ssl/certs/ca-certificates.crt', joinCertificates(root));
  return { contents, software: [node.software, ...debian] };
}

async function downloadNode(project: string, architecture: Architecture, work: string) {
  const { cpu } = PLATFORMS[architecture];
  const folder = join(work, 'node');
  const part = join(project, 'lab/parts/node');
  mkdirSync(folder, { recursive: true });
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    if (existsSync(join(part, name))) cpSync(join(part, name), join(folder, name));
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--os=linux', `--cpu=${cpu}`], {
    cwd: folder,
  });
  const name = `node-linux-${cpu}`;
  const installed = join(folder, 'node_modules', name);
  const { version } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const software: Software = { name: 'node', version, purl: `pkg:npm/${name}@${version}` };
  return { binary: join(installed, 'bin/node'), software };
}

/** Downloads Debian packages with lists of their own, so that neither root nor this machine's architecture matters. */
async function downloadDebian(
  architecture: Architecture,
  folder: string,
  root: string,
): Promise<readonly Software[]> {
  for (const path of ['lists/partial', 'archives/partial'])
    mkdirSync(join(folder, path), { recursive: true });
  const configuration = join(folder, 'apt.conf');
  writeFileSync(join(folder, 'status'), '');
  writeFileSync(configuration, aptConfiguration(folder, architecture));
  await run('apt-get', ['-c', configuration, 'update', '-qq'], { cwd: folder });
  await run('apt-get', ['-c', configuration, 'download', '-qq', ...DEBIAN], { cwd: folder });
  const files = readdirSync(folder)
    .filter(name => name.endsWith('.deb'))
    .sort();
  const software = [];
  for (const file of files) {
    await run('dpkg-deb', ['--extract', file, root], { cwd: folder });
    const { stdout } = await run('dpkg-deb', ['--show', file], { cwd: folder });
    const [name = '', version = ''] = stdout.trim().split('\t');
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    software.push({ name, version, purl });
  }
  return software;
}

function aptConfiguration(folder: string, architecture: Architecture): string {
  return `Dir::State "${folder}";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}";
APT::Architecture "${architecture}";
APT::Architectures { "${architecture}"; };
APT::Sandbox::User "";
`;
}

/** One file of all certificates, as update-ca-certificates writes it. */
function joinCertificates(root: string): string {
  const file = join(root, 'ca-certificates.crt');
  const folder = join(root, 'usr/share/ca-certificates/mozilla');
  const texts = readdirSync(folder)
    .sort()
    .map(name => readFileSync(join(folder, name), 'utf8').trimEnd());
  writeFileSync(file, `${texts.join('\n')}\n`);
  return file;
}
