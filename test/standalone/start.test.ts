import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeFolders } from '../support/folder.ts';
import { PROJECT, typescript } from '../support/lab/command-line.ts';

const SOON = { timeout: 15_000, interval: 10 };

describe('npm start where the real parts are not built', () => {
  it('says what to run, tells what becomes of the files, and follows them until it is ended', async () => {
    const { root, folder, state } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'quickstart'), folder, { recursive: true });
    const [program = '', ...args] = typescript('src/start.ts', '--folder', folder, '--state', state);
    // Nothing is built in a cache that is empty.
    const env = { PATH: process.env['PATH'] ?? '', HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
    const child = spawn(program, args, { cwd: PROJECT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await vi.waitFor(() => expect(said).toContain('TCPRoute default/echo at Gateway'), SOON);
    expect(said).toContain('npm run parts -- --only lab');
    expect(said).toMatch(/100\.64\.0\.2:18081 +through 127\.0\.0\.1:1055/);

    const web = join(folder, 'web.yaml');
    writeFileSync(web, readFileSync(web, 'utf8').replaceAll('port: 18082', 'port: 19999'));
    await vi.waitFor(() => expect(said).toContain('100.64.0.3:19999'), SOON);
    writeFileSync(web, 'kind: [');
    await vi.waitFor(() => expect(said).toContain('! a declaration is not as it should be: web.yaml'), SOON);

    const closed = once(child, 'close');
    child.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    expect(said).toContain('all of it has ended');
  });
});
