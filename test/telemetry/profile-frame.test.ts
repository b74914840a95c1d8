import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { frameOf } from '../../src/telemetry/profile.ts';

const call = { functionName: 'work', scriptId: '1', url: '', lineNumber: 9, columnNumber: 4 };

describe('a frame', () => {
  it('counts lines from one, and shows a path rather than an address', () => {
    expect(frameOf({ ...call, url: 'file:///srv/a%20b.js' })).toEqual({
      name: 'work',
      file: '/srv/a b.js',
      line: 10,
    });
  });

  it.each([
    ['', '(anonymous)'],
    ['file:///srv/a.js', '(anonymous) a.js:10:5'],
  ])('of a function without a name in %j is called %s', (url, name) => {
    expect(frameOf({ ...call, functionName: '', url }).name).toBe(name);
  });
});

describe('a frame of a bundle', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'frame-'));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('has the position in the source if Node has the source map', async () => {
    const source = '\n\n// first\n\nexport function early() {}\n\nexport function work() {\n  return 1;\n}\n';
    const { code } = await transform(source, {
      format: 'cjs',
      minifyWhitespace: true,
      sourcemap: 'inline',
      sourcefile: join(folder, 'written.ts'),
    });
    const bundle = join(folder, 'bundle.cjs');
    await writeFile(bundle, code);
    process.setSourceMapsEnabled(true);
    createRequire(import.meta.url)(bundle);
    const columnNumber = code.indexOf('work(){');
    const frame = frameOf({ ...call, url: pathToFileURL(bundle).href, lineNumber: 0, columnNumber });
    process.setSourceMapsEnabled(false);
    expect(frame).toEqual({ name: 'work', file: join(folder, 'written.ts'), line: 7 });
  });
});
