import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { named, route } from '../../support/declared.ts';
import { makeFolders } from '../../support/files/folder.ts';
import { generatedIn } from '../../support/standalone/generated.ts';
import { meshBinding, meshTailnet } from '../../support/objects.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

import { filesOf, naming, secret, startGatewayFiles, web } from '../../support/standalone/gateway-files.ts';

describe('the folder of Envoy Gateway after a restart', () => {
  it('removes what an earlier run has left, and no foreign file', async () => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    await first.put('a.yaml', web(), secret);
    await first.put('b.yaml', route('HTTPRoute', 'web'));
    await eventually(() => expect(first.names()).toHaveLength(3));
    await first.close();
    await first.remove('a.yaml');
    writeFileSync(join(first.generated, 'mine.yaml'), 'a: b');
    writeFileSync(join(first.generated, '.mesh-gateway.yaml.new'), 'half');
    const second = await startGatewayFiles(folders);
    await eventually(() => expect(second.names()).toEqual(['HTTPRoute/default/web']));
    expect(readdirSync(first.generated).sort()).toEqual(['.mesh-gateway', 'mesh-gateway.yaml', 'mine.yaml']);
    expect(second.lines.map(({ msg }) => msg)).toContain(
      'Envoy Gateway also reads files that mesh-gateway did not write',
    );
  });

  it('writes nothing after a restart without changes', async () => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    await first.put('a.yaml', web(), secret, naming, route('HTTPRoute', 'web'));
    await eventually(() => expect(first.names()).toHaveLength(4));
    const before = filesOf(first.generated);
    await first.close();
    const second = await startGatewayFiles(folders);
    expect(second.names()).toHaveLength(4);
    expect(filesOf(second.generated)).toEqual(before);
  });

  it('removes a MeshBinding, which is created again where one is needed', async () => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    const { write } = first.directory;
    await write.apply({ ...(named(meshBinding(), 'default/public') as Parameters<typeof write.apply>[0]) });
    await eventually(() => expect(first.names()).toEqual(['MeshBinding/default/public']));
    await first.close();
    writeFileSync(join(folders.folder, 'a.yaml'), '{ broken');
    const second = await startGatewayFiles(folders);
    expect(second.names()).toEqual([]);
  });

  it('writes nothing into a folder with foreign files and no mark', async () => {
    const folders = makeFolders();
    const generated = join(folders.root, 'generated');
    mkdirSync(generated, { mode: 0o755 });
    writeFileSync(join(generated, 'theirs.json'), '{}');
    const { lines, put } = await startGatewayFiles(folders);
    await put('a.yaml', secret);
    const refused = 'the folder for Envoy Gateway cannot be written';
    await eventually(() => expect(lines.map(({ msg }) => msg)).toContain(refused));
    expect(readdirSync(generated)).toEqual(['theirs.json']);
    expect(statSync(generated).mode & 0o777).toBe(0o755);
  });

  it('keeps what an earlier run has written for a file that cannot be read', async () => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    await first.put('a.yaml', secret, route('HTTPRoute', 'web'));
    await eventually(() => expect(first.names()).toHaveLength(2));
    await first.close();
    await writeFile(join(folders.folder, 'a.yaml'), '{ broken');
    const second = await startGatewayFiles(folders);
    expect(second.names()).toEqual(['HTTPRoute/default/web', 'Secret/default/cert']);
    await second.put('a.yaml', route('HTTPRoute', 'web'));
    await eventually(() => expect(second.names()).toEqual(['HTTPRoute/default/web']));
  });

  it.each([
    ['not YAML', '{ broken'],
    ['in part not valid', `${JSON.stringify(secret)}\n---\nkind: MeshEndpoints`],
  ])('keeps MeshEndpoints that an earlier run has written of a file that is %s now', async (_what, text) => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    await first.put('a.yaml', secret, web());
    await first.put('b.yaml', naming);
    await eventually(() => expect(first.names()).toHaveLength(3));
    const names = first.names();
    await first.close();
    await writeFile(join(folders.folder, 'a.yaml'), text);
    const second = await startGatewayFiles(folders);
    expect(second.names()).toEqual(names);
    await second.put('a.yaml', secret);
    await eventually(() => expect(second.names()).toHaveLength(2));
  });

  it.each([
    ['removed', undefined],
    ['mended and has none of it', JSON.stringify(named(meshTailnet(), 'home'))],
  ])('removes what an earlier run has written of an unreadable file once that is %s', async (_what, text) => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    await first.put('a.yaml', route('HTTPRoute', 'web'));
    await eventually(() => expect(first.names()).toHaveLength(1));
    await first.close();
    const file = join(folders.folder, 'a.yaml');
    await writeFile(file, '{ broken');
    const second = await startGatewayFiles(folders);
    expect(second.names()).toEqual(['HTTPRoute/default/web']);
    if (text === undefined) rmSync(file);
    else await writeFile(file, text);
    await eventually(() => expect(second.names()).toEqual([]));
  });

  it('is created again when it is removed, with all parts', async () => {
    const { put, names, generated, lines } = await startGatewayFiles(makeFolders());
    await put('a.yaml', web(), secret, naming);
    await eventually(() => expect(names()).toHaveLength(3));
    rmSync(generated, { recursive: true });
    await put('b.yaml', route('HTTPRoute', 'web'));
    await eventually(() => expect(names()).toHaveLength(4));
    expect(lines.map(({ msg }) => msg)).toContain('the folder for Envoy Gateway cannot be written');
  });

  it('is restored after a restart if it was edited', async () => {
    const folders = makeFolders();
    const first = await startGatewayFiles(folders);
    await first.put('a.yaml', web(), secret, naming);
    await eventually(() => expect(first.names()).toHaveLength(3));
    const file = join(first.generated, 'mesh-gateway.yaml');
    const before = readFileSync(file, 'utf8');
    await first.close();
    writeFileSync(file, JSON.stringify(secret) + `\n---\n${before}`);
    const second = await startGatewayFiles(folders);
    expect(readFileSync(file, 'utf8')).toBe(before);
    await second.close();
    writeFileSync(file, before.replaceAll(/^#.*\n/gm, ''));
    await startGatewayFiles(folders);
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('renames a route that loses a field while the folder cannot be written', async () => {
    const clock = new VirtualClock();
    const { put, names, generated, contentOf, lines } = await startGatewayFiles(makeFolders(), clock);
    await put('a.yaml', route('HTTPRoute', 'web', { hostnames: ['a.example.com'] }));
    await eventually(() => expect(names()).toHaveLength(1));
    const unwritable = join(generated, '.mesh-gateway.yaml.new');
    mkdirSync(unwritable);
    await put('a.yaml', route('HTTPRoute', 'web'));
    const refused = 'the folder for Envoy Gateway cannot be written';
    await eventually(() => expect(lines.map(({ msg }) => msg)).toContain(refused));
    rmSync(unwritable, { recursive: true });
    await clock.advance(1000);
    const text = () => generatedIn(generated).get('HTTPRoute/default/web') ?? '';
    await eventually(() => expect(text().split('\n---\n')).toHaveLength(2));
    await clock.advance(5150);
    await eventually(() =>
      expect(contentOf('HTTPRoute/default/web')['spec']).not.toHaveProperty('hostnames'),
    );
  });
});
