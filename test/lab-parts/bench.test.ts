import { beforeEach, describe, expect, it } from 'vitest';
import { runCommand, typescript } from '../support/lab/command-line.ts';
import { emptyFolder } from './sample.ts';

let folder = '';
beforeEach(() => {
  folder = emptyFolder();
});

describe('a bench', () => {
  it('that cannot start ends with one message', async () => {
    const command = ['env', `XDG_CACHE_HOME=${folder}`, ...typescript('bench/main.ts', 'health')];
    expect(await runCommand(command)).toEqual({
      code: 2,
      output: 'bench: cluster: etcd is not built yet: run npm run parts\n',
    });
  });
});
