import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { stringify } from 'yaml';
import { runCheck } from '../../src/tools/check/command.ts';
import { OUTPUTS } from '../../src/tools/check/output.ts';
import { runTrace } from '../../src/tools/trace/command.ts';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { makeFolders } from '../support/files/folder.ts';
import { ApiServer } from '../support/kubernetes/api-server.ts';
import { AUTHORITY } from '../support/kubernetes/wire-certificates.ts';
import { kubeconfigText, makeFiles } from '../support/kubernetes/wire-kubeconfig.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';

const MARKER = 'planted-e5f1c0';
const NUMBER = 4815162342;

let out: string[] = [];
beforeEach(() => {
  out = [];
  for (const name of ['log', 'error'] as const)
    vi.spyOn(console, name).mockImplementation((text: string) => void out.push(text));
});
afterEach(() => vi.restoreAllMocks());

const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'mesh-oauth' } };
const web = (healthCheck: object, more: object = {}) =>
  named(meshEndpoints({ endpoints: [endpoint({ healthCheck, ...more })] }), 'default/web');
const inOneLine = (object: object) => JSON.stringify(object);

/** Files with a mistake in or beside a secret, which the commands report. */
const PLANTED: readonly (readonly [string, string])[] = [
  ['a Secret', stringify({ ...secret, stringData: { 'client-secret': MARKER } })],
  ['a Secret that is there twice', `${stringify({ ...secret, data: { a: MARKER } })}---\n`.repeat(2)],
  ['a Secret in one line', inOneLine({ ...secret, data: { a: MARKER }, kind: 'Secret' })],
  ['a Secret with a key that is repeated', `${stringify(secret)}data: {a: b}\ndata: {a: ${MARKER}}\n`],
  ['a Secret with a tab', `${stringify(secret)}stringData:\n\ta: ${MARKER}\n`],
  ['a Secret that is not closed', `${stringify(secret)}stringData: {a: "${MARKER}\n`],
  ['a Secret in a template', `${stringify(secret)}stringData:\n  a: {{ ${MARKER} }}\n`],
  ['a header that is no text', stringify(web({ headers: { Authorization: [MARKER] } }))],
  ['a header that is a number', stringify(web({ headers: { Authorization: NUMBER } }))],
  ['a header with a line break', stringify(web({ headers: { Authorization: `${MARKER}\r\nx: y` } }))],
  ['a header in the line of a fault', inOneLine(web({ headers: { Authorization: MARKER } }, { port: 0 }))],
  [
    'a URL with a password',
    stringify(named(meshTailnet({ controlURL: `https://me:${MARKER}@example.com` }), 'example')),
  ],
  [
    'a variable of mesh pods',
    inOneLine(
      named(meshTailnet({ pool: { extraEnv: [{ name: 'TZ', value: MARKER }], replicas: 'x' } }), 'a'),
    ),
  ],
];

const WORLD = [
  openGateway('default/public'),
  route('HTTPRoute', 'default/wrong', { rules: [{ backendRefs: [meshBackend({ port: 1 })] }] }),
];

/** A folder with one of the files, beside a route with a fault. */
function folderWith(text: string): string {
  const { folder } = makeFolders();
  mkdirSync(folder);
  writeFileSync(join(folder, 'planted.yaml'), text);
  writeFileSync(join(folder, 'world.yaml'), WORLD.map(object => stringify(object)).join('---\n'));
  return folder;
}

describe('no output has', () => {
  it.each(PLANTED)('%s', async (_, text) => {
    const folder = folderWith(text);
    for (const output of OUTPUTS) await runCheck(['--output', output, folder], {});
    for (const output of ['text', 'json'])
      await runTrace(['http://web.example.com/', '--file', folder, '--output', output], {});
    const printed = out.join('\n');
    expect(printed).toContain('web');
    expect(printed).not.toContain(MARKER);
    expect(printed).not.toContain(String(NUMBER));
  });
});

describe('no output about a cluster has', () => {
  it('values of its Secrets, which are not read, or of sensitive fields', async () => {
    const server = new ApiServer();
    onTestFinished(() => server.close());
    const sent = web({ enabled: true, headers: { Authorization: MARKER } });
    for (const object of [...WORLD, sent]) server.state.put(object);
    const { write } = makeFiles();
    const cluster = {
      server: `https://127.0.0.1:${await server.listen()}`,
      'certificate-authority-data': Buffer.from(AUTHORITY.ca).toString('base64'),
    };
    const kubeconfig = write('config', kubeconfigText({ cluster, user: { token: server.settings.token } }));
    for (const output of OUTPUTS) await runCheck(['--kubeconfig', kubeconfig, '--output', output], {});
    await runTrace(['http://web.example.com/', '--kubeconfig', kubeconfig], {});
    expect(out.join('\n')).toContain('TailnetNotFound');
    expect(out.join('\n')).not.toContain(MARKER);
    const others = server.requests.flatMap(each => ('path' in each ? [each.path] : []));
    expect(others.filter(path => /secrets|configmaps/.test(path))).toEqual([]);
  });
});

describe('a finding beside what is hidden', () => {
  it('has its line', async () => {
    const folder = folderWith(stringify(web({ headers: { Authorization: MARKER } }, { port: 0 })));
    expect(await runCheck([folder], {})).toBe(1);
    expect(out.join('\n')).toMatch(/\d+ \| +port: 0\n/);
  });
});
