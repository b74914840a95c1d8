import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { missingOf } from '../../lab/cluster/needs.ts';
import { locateBinaries, markUsed, USED_FILE } from '../../lab/parts/locate.ts';
import { writeProgram } from '../support/lab/fake-tools.ts';
import { asSomeoneElse, emptyFolder } from './sample.ts';

it('names PATH when Go is not found, since the path of a program depends on its version', () => {
  const folder = emptyFolder();
  const pathOf = locateBinaries({ PATH: '/usr/sbin:/sbin', XDG_CACHE_HOME: folder });
  expect(() => pathOf('tailscaled')).toThrow(
    'tailscaled cannot be found: go is not found; PATH is /usr/sbin:/sbin',
  );
  expect(() => pathOf('envoy')).toThrow('envoy is not built yet: run npm run parts -- --only lab');
});

it('reports that a program is not built when Go is found', () => {
  const folder = emptyFolder();
  writeProgram(join(folder, 'bin'), 'go', 'echo go1.99.0');
  const pathOf = locateBinaries({ PATH: join(folder, 'bin'), XDG_CACHE_HOME: folder });
  expect(() => pathOf('kubelet')).toThrow('kubelet is not built yet: run npm run parts');
});

it('uses a read-only cache', async () => {
  const folder = emptyFolder();
  const part = { folder: join(folder, 'part') };
  mkdirSync(part.folder);
  chmodSync(folder, 0o755);
  chmodSync(part.folder, 0o555);
  await asSomeoneElse(() => markUsed(part, new Date()));
  expect(existsSync(join(part.folder, USED_FILE))).toBe(false);
});

it('names the command that needs root', () => {
  const machine = { isRoot: false, searchPath: '' };
  expect(missingOf(machine, 'down')).toBe('a cluster needs root: sudo npm run cluster -- down');
  expect(missingOf({ ...machine, isRoot: true }, 'up')).toMatch(
    /^bash, .* missing: apt-get install -y bash /,
  );
});
