import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runTrace } from '../../src/tools/trace/command.ts';
import { makeFolders } from '../support/files/folder.ts';
import { meshBackend, openGateway, route } from '../support/declared.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { parseOutput } from '../support/tools/output.ts';

let out: string[] = [];
let err: string[] = [];
beforeEach(() => {
  [out, err] = [[], []];
  vi.spyOn(console, 'error').mockImplementation((text: string) => void err.push(text));
  vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
});
afterEach(() => vi.restoreAllMocks());

/** Whose ports the tags of devices decide. */
const DISCOVERING = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata: {name: devices}
spec: {tailnet: example.ts.net, tagSelectors: [{key: web, operator: Exists}]}
`;

const CLUSTER = ['--file', join(PROJECT, 'examples', 'cluster')];

describe('mesh-gateway trace', () => {
  const PAGES = ['README.md', 'docs/why-is-my-route-not-working.md', 'docs/commands.md'];

  it.each(PAGES)('prints what %s shows', async page => {
    const text = readFileSync(join(PROJECT, page), 'utf8');
    const shown = [...text.matchAll(/^\$ npx mesh-gateway trace (\S+) --file (\S+)\n([^]*?)(?=^\$|^```)/gm)];
    for (const [, url = '', folder = '', printed = ''] of shown) {
      out = [];
      const status = await runTrace([url, '--file', join(PROJECT, folder)], {});
      expect(`${out.join('\n')}\n`).toBe(printed);
      expect(status).toBe(printed.includes('BROKEN') ? 1 : 0);
    }
    expect(shown.length).toBeGreaterThan(0);
  });

  it('prints JSON', async () => {
    await runTrace(['http://web.example.org/', ...CLUSTER, '--output', 'json'], {});
    expect(parseOutput(out.join(''))).toEqual({
      version: 'v1',
      ways: [
        {
          gateway: 'default/public',
          hasRule: false,
          reaches: 'none',
          steps: [
            { is: 'ok', name: 'listener', text: 'http (HTTP, port 80) of Gateway default/public' },
            {
              is: 'broken',
              name: 'rule',
              text: 'no route is for web.example.org',
              problem: {
                severity: 'error',
                reason: 'NoRouteForHost',
                text: 'no route is for web.example.org',
                fix: expect.stringContaining('web.example.com') as string,
              },
            },
          ],
        },
      ],
    });
  });

  const BACKEND = `        - group: mesh-gateway.dev
          kind: MeshEndpoints
          name: `;

  it.each<readonly [number, string, (folder: string, web: string) => string]>([
    [0, 'all requests reach an endpoint', (_, web) => web],
    [3, 'a part of them does', (_, web) => `${web}${BACKEND}gone\n          port: 8080\n`],
    [1, 'none does', (_, web) => web.replace(`${BACKEND}web`, `${BACKEND}gone`)],
    ...['tailnet.yaml', 'gateway.yaml'].map(
      name =>
        [
          2,
          `${name} decides it, which is not there`,
          (folder: string, web: string) => {
            rmSync(join(folder, name));
            return web;
          },
        ] as const,
    ),
    [
      2,
      'a share depends on what is in no file',
      (_, web) => `${web}${BACKEND}devices\n          port: 8080\n---\n${DISCOVERING}`,
    ],
  ])('exits with %i where %s, for one request and for all routes', async (expected, _, change) => {
    const { folder } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'cluster'), folder, { recursive: true });
    const file = join(folder, 'web.yaml');
    writeFileSync(file, change(folder, readFileSync(file, 'utf8')));
    expect(await runTrace(['http://web.example.com/', '--file', folder], {})).toBe(expected);
    expect(await runTrace(['--all', '--file', folder], {})).toBe(expected);
  });

  it('exits with 3 where one of two Gateways leads to an endpoint', async () => {
    const { folder } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'cluster'), folder, { recursive: true });
    const lost = route('HTTPRoute', 'default/lost', {
      ...{ parentRefs: [{ name: 'other' }], hostnames: ['web.example.com'] },
      rules: [{ backendRefs: [meshBackend({ name: 'gone' })] }],
    });
    const objects = [openGateway('default/other'), lost];
    writeFileSync(join(folder, 'other.yaml'), objects.map(each => JSON.stringify(each)).join('\n---\n'));
    const url = 'http://web.example.com/';
    expect(await runTrace([url, '--file', folder], {})).toBe(3);
    expect(await runTrace([url, '--from', 'default/public', '--file', folder], {})).toBe(0);
    expect(await runTrace([url, '--from', 'default/other', '--file', folder], {})).toBe(1);
  });

  it('reports an object that files have twice, and exits with 2 for all routes: which one counts is not known', async () => {
    const { folder } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'cluster'), folder, { recursive: true });
    cpSync(join(folder, 'tailnet.yaml'), join(folder, 'zz.yaml'));
    expect(await runTrace(['--all', '--file', folder], {})).toBe(2);
    expect(err).toEqual([
      expect.stringMatching(/zz\.yaml:\d+: MeshTailnet example is also in .*tailnet\.yaml/),
    ]);
  });

  it('exits with 2 where routes may be among what is left out, and with 0 without a route', async () => {
    const { folder } = makeFolders();
    mkdirSync(folder);
    writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(openGateway('default/public')));
    expect(await runTrace(['--all', '--file', folder], {})).toBe(0);
    expect(out).toEqual(['no route has MeshEndpoints among its backends']);
    writeFileSync(join(folder, 'web.yaml'), 'a: [');
    expect(await runTrace(['--all', '--file', folder], {})).toBe(2);
  });

  it('exits with 0 also where another Gateway has the port, and no rule for the request', async () => {
    const { folder } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'cluster'), folder, { recursive: true });
    writeFileSync(join(folder, 'other.yaml'), JSON.stringify(openGateway('default/other')));
    expect(await runTrace(['http://web.example.com/', '--file', folder], {})).toBe(0);
    expect(out.join('\n')).toContain('no route attaches to it');
  });

  it('reports what it leaves out, without which a request may seem to have no route', async () => {
    const { folder } = makeFolders();
    cpSync(join(PROJECT, 'examples', 'cluster'), folder, { recursive: true });
    const web = readFileSync(join(folder, 'web.yaml'), 'utf8');
    writeFileSync(join(folder, 'web.yaml'), web.replace(/port: 8080\n$/, 'port: "8080"\n'));
    expect(await runTrace(['http://web.example.com/', '--file', folder], {})).toBe(1);
    expect(out.join('\n')).toContain('no route attaches to it');
    expect(err).toEqual([
      `${join(folder, 'web.yaml')}:42: spec.rules[0].backendRefs[0].port: "8080" is not a whole number from 1 to 65535; write it without quotes: 8080`,
    ]);
  });

  it('refuses what it does not know', async () => {
    await expect(runTrace([], {})).rejects.toThrow('trace: name one URL or HOST:PORT');
    await expect(runTrace(['http://a/', '--output', 'xml'], {})).rejects.toThrow('neither text nor json');
    await expect(runTrace(['http://a/', '--file', 'none.yaml'], {})).rejects.toThrow(
      'none.yaml does not exist',
    );
    await expect(runTrace(['http://a/', '--file', 'a.yaml', '--context', 'b'], {})).rejects.toThrow(
      'trace: --context is about a cluster: leave it out, or --file',
    );
    await expect(runTrace(['http://a/', '--file', 'a.yaml', '--envoy'], {})).rejects.toThrow(
      'trace: --envoy reads Envoys of a cluster: leave out --file',
    );
    await expect(runTrace(['http://a/', '--kubeconfig', 'absent', '--envoy'], {})).rejects.toThrow('absent');
  });
});
