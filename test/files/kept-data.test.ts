import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KeptData } from '../../src/files/kept-data.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { makeFiles } from '../support/kubernetes/wire-kubeconfig.ts';

const DATA = { callers: '10.0.0.7\n', destinations: '', targets: 'ü\u2028\n"\\' };

/** A folder, what is logged, and a file in the folder, as each process opens it. */
function openFile(name = 'relay.json') {
  const files = makeFiles();
  const lines: string[] = [];
  const scene = { onLine: () => undefined as unknown };
  const write = (line: string) => {
    lines.push(line);
    scene.onLine();
  };
  const log = createLog({ level: 'info', to: { write } });
  return Object.assign(scene, { files, lines, open: () => new KeptData(files.path(name), log) });
}

describe('the data of a ConfigMap that a relay keeps', () => {
  it('is read again by the next process, and there is none at first', async () => {
    const { open, lines } = openFile();
    expect(await open().read()).toBeUndefined();
    const kept = open();
    kept.keep(DATA);
    await kept.written();
    expect(await open().read()).toEqual(DATA);
    expect(lines).toEqual([]);
  });

  it('is the last of several in quick succession', async () => {
    const { open } = openFile();
    const kept = open();
    for (let n = 0; n < 200; n++) {
      kept.keep({ ...DATA, callers: `10.0.0.${n}\n` });
      // Some of them while the file is being written.
      if (n % 7 === 0) await new Promise(setImmediate);
    }
    await kept.written();
    expect(await open().read()).toEqual({ ...DATA, callers: '10.0.0.199\n' });
  });

  it('is as it was where it is changed and changed back', async () => {
    const { open } = openFile();
    const kept = open();
    for (const data of [DATA, { callers: 'any\n' }, DATA]) kept.keep(data);
    await kept.written();
    expect(await open().read()).toEqual(DATA);
  });

  it.each([
    ['is empty', ''],
    ['is cut off', JSON.stringify(DATA).slice(0, 40)],
    ['is no JSON', '\u0000\u0001'],
    ['is a list', '["any"]'],
    ['is null', 'null'],
    ['has no text', '{"callers":1,"targets":{"a":"b"}}'],
    ['has nothing', '{}'],
  ])('counts as none where the file %s', async (_, text) => {
    const { files, open, lines } = openFile();
    files.write('relay.json', text);
    expect(await open().read()).toBeUndefined();
    expect(lines).toEqual([]);
    const kept = open();
    kept.keep(DATA);
    await kept.written();
    expect(await open().read()).toEqual(DATA);
  });

  it('has only the texts of the file', async () => {
    const { files, open } = openFile();
    files.write('relay.json', JSON.stringify({ callers: 'any\n', targets: 5 }));
    expect(await open().read()).toEqual({ callers: 'any\n' });
  });

  it('is read as it was before where a process ended while it wrote', async () => {
    const { files, open } = openFile();
    const kept = open();
    kept.keep(DATA);
    await kept.written();
    files.write('relay.json.new', '{"callers":"10.');
    expect(await open().read()).toEqual(DATA);
  });

  it('that cannot be written is logged, and written once it can be', async () => {
    const { files, open, lines } = openFile(join('later', 'relay.json'));
    const kept = open();
    kept.keep(DATA);
    await kept.written();
    expect(lines.map(line => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'cannot keep the ConfigMap for a restart',
    ]);
    expect(lines[0]).toContain('ENOENT');
    mkdirSync(files.path('later'));
    const next = { ...DATA, callers: '10.0.0.8\n' };
    kept.keep(next);
    await kept.written();
    expect(await open().read()).toEqual(next);
    expect(lines).toHaveLength(1);
  });

  it('is written where it changed while a write failed', async () => {
    const scene = openFile(join('later', 'relay.json'));
    scene.onLine = () => mkdirSync(scene.files.path('later'));
    const kept = scene.open();
    kept.keep({ callers: 'any\n' });
    kept.keep(DATA);
    await kept.written();
    expect(await scene.open().read()).toEqual(DATA);
    expect(scene.lines).toHaveLength(1);
  });

  it('is written again where the last time failed, also where it has not changed since', async () => {
    const { files, open } = openFile(join('later', 'relay.json'));
    const kept = open();
    kept.keep(DATA);
    await kept.written();
    mkdirSync(files.path('later'));
    kept.keep(DATA);
    await kept.written();
    expect(await open().read()).toEqual(DATA);
  });
});
