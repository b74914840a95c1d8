import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeFolders } from '../support/folder.ts';
import { PROJECT, typescript } from '../support/lab/command-line.ts';

describe('npm start where the real parts are not built', () => {
  it('says what to run, tells what becomes of the files, and follows them until it is ended', async () => {
    const { root, folder, state } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'quickstart'), folder, { recursive: true });
    const [program = '', ...args] = typescript('lab/commands/start.ts', '--folder', folder, '--state', state);
    // Nothing is built in a cache that is empty.
    const env = { PATH: process.env['PATH'] ?? '', HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
    const child = spawn(program, args, { cwd: PROJECT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await eventually(() => expect(said).toContain('TCPRoute default/echo at Gateway'));
    expect(said).toContain('npm run parts -- --only lab');
    expect(said).toMatch(/100\.64\.0\.2:18081 +through 127\.0\.0\.1:1055/);

    const web = join(folder, 'web.yaml');
    writeFileSync(web, readFileSync(web, 'utf8').replaceAll('port: 18082', 'port: 19999'));
    await eventually(() => expect(said).toContain('100.64.0.3:19999'));
    writeFileSync(web, 'kind: [');
    await eventually(() => expect(said).toContain('! a declaration is not as it should be: web.yaml'));

    const closed = once(child, 'close');
    child.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    expect(said).toContain('all of it has ended');
  });
});
