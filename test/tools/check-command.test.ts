import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { runCheck } from '../../src/tools/check/command.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { captureConsole } from '../support/tools/console.ts';
import { makeFolders } from '../support/files/folder.ts';
import { parseOutput } from '../support/tools/output.ts';

const ROUTE = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec:
  parentRefs: [{name: public}]
  rules:
    - backendRefs:
        - {kind: MeshEndpoints, name: web, port: 8080}
`;
const FIXED = ROUTE.replace('{kind', '{group: mesh-gateway.dev, kind');
const SHOP = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop }
spec:
  parentRefs: [{ name: public }]
  hostname: [shop.example.com]
  rules:
    - matches: [{ path: { type: Prefix, value: / } }]
      backendRefs: [{ name: shop, port: 80 }]
`;
const ENDPOINT = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata:
  name: web
spec:
  tailnet: example.ts.net
  endpoints:
    - name: web
      meshIP: 100.64.0.1
      meshFQDN: web.example.ts.net
      port: 70000
      protocol: HTTP
`;
const TAILNET = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata: { name: example }
spec: { tailnet: example.ts.net, pool: { mode: External, addresses: ['10.0.0.1:1055'] } }
`;
const MESSAGE =
  'spec.rules[0].backendRefs[0]: has no group, so Envoy Gateway looks for a kind of Kubernetes itself: add group: mesh-gateway.dev';

let folder: string;
const printed = captureConsole();
beforeEach(() => {
  ({ folder } = makeFolders());
  mkdirSync(folder);
});

/** Writes a file, and checks its folder. */
async function checked(text: string, ...options: readonly string[]) {
  writeFileSync(join(folder, 'web.yaml'), text);
  const status = await runCheck([...options, folder], {});
  return { status, out: printed.out.join('\n').replaceAll(`${folder}/`, ''), err: printed.err.join('\n') };
}

describe('a folder for kustomize', () => {
  it('with patches is not checked, and the command that renders it is named', async () => {
    writeFileSync(
      join(folder, 'kustomization.yaml'),
      'resources: [web.yaml]\npatches: [{path: patch.yaml}]\n',
    );
    writeFileSync(join(folder, 'patch.yaml'), ENDPOINT);
    const { status, out, err } = await checked(ROUTE);
    expect(out.split('\n')[0]).toBe(
      `kustomization.yaml:1:1: error: patches: this folder is for kustomize, whose patches make other objects of its files, which are not checked: render it first: kustomize build ${folder} | mesh-gateway check - [NotRendered]`,
    );
    expect([status, err]).toEqual([1, '0 objects in 3 files: 1 error, 0 warnings, 0 notes']);
  });

  it('without patches is checked', async () => {
    writeFileSync(join(folder, 'kustomization.yaml'), 'resources: [web.yaml]\n');
    expect((await checked(FIXED)).status).toBe(0);
  });
});

describe('mesh-gateway check', () => {
  it('prints each finding with its line, and exits with 1', async () => {
    expect(await checked(ROUTE)).toEqual({
      status: 1,
      out: [
        `web.yaml:8:11: error: ${MESSAGE} [GroupMissing]`,
        '    8 |         - {kind: MeshEndpoints, name: web, port: 8080}',
        '      |           ^',
      ].join('\n'),
      err: '1 object in 1 file: 1 error, 0 warnings, 0 notes',
    });
  });

  it('judges addresses by the configuration that its flags give', async () => {
    const web = ENDPOINT.replace('70000', '8080').replace('name: web', 'name: web\n  namespace: default');
    const objects = [FIXED, web, TAILNET].join('---\n');
    expect((await checked(objects)).status).toBe(0);
    const { status, out } = await checked(objects, '--refused-addresses', '100.64.0.1', '--output', 'json');
    expect(status).toBe(1);
    expect(parseOutput(out)).toMatchObject({ problems: [{ reason: 'AddressRefused' }] });
    await expect(checked(objects, '--data-path', 'Sideways')).rejects.toThrow(
      'check: --data-path "Sideways" is neither Proxy nor Direct',
    );
  });

  it.each([
    [
      'docs/why-is-my-route-not-working.md',
      ROUTE.replace('spec:', 'spec:\n  hostnames: [web.example.com]').replace(
        '{kind: MeshEndpoints, name: web, port: 8080}',
        'kind: MeshEndpoints\n          name: web\n          port: 8080',
      ),
    ],
    ['README.md', ENDPOINT],
  ])('prints what %s shows', async (page, text) => {
    const { out, err } = await checked(text);
    const [, block = ''] =
      /\$ npx mesh-gateway check web.yaml\n([^]*?)```/.exec(readFileSync(join(PROJECT, page), 'utf8')) ?? [];
    expect(block).not.toBe('');
    expect(`${out}\n${err}\n`).toContain(block);
  });

  it('prints what docs/commands.md shows of CRDs', async () => {
    const { out, err } = await checked(SHOP);
    const page = readFileSync(join(PROJECT, 'docs/commands.md'), 'utf8');
    const [, block = ''] = /\$ npx mesh-gateway check shop.yaml\n([^]*?)```/.exec(page) ?? [];
    expect(`${out}\n${err}\n`.replaceAll('web.yaml', 'shop.yaml')).toBe(block);
  });

  it('prints nothing but a summary where all is well, and exits with 0', async () => {
    expect(await checked(FIXED)).toEqual({
      ...{ status: 0, out: '', err: '1 object in 1 file: 0 errors, 0 warnings, 0 notes' },
    });
  });

  it.each([
    [true, ['\r\u001b[Kchecking 1 file ...', '\r\u001b[K']],
    [false, []],
  ])('shows what it does on a terminal alone, and removes it: %s', async (isTTY, shown) => {
    const written: string[] = [];
    const stderr = process.stderr as { isTTY: boolean | undefined };
    const before = stderr.isTTY;
    stderr.isTTY = isTTY;
    vi.spyOn(process.stderr, 'write').mockImplementation(text => written.push(String(text)) > 0);
    try {
      await checked(FIXED);
    } finally {
      stderr.isTTY = before;
    }
    expect(written).toEqual(shown);
  });

  it('has a hint where there is nothing to check, and exits with 0', async () => {
    const { status, out } = await checked('');
    expect(status).toBe(0);
    expect(out).toContain('name the files, which end in .yaml, .yml or .json, or the cluster that has them');
  });

  it('gives no such hint where what is there cannot be read', async () => {
    const { status, out } = await checked('a: [');
    expect(status).toBe(1);
    expect(out).toMatch(/^web\.yaml:1:5: error: .* \[Syntax\]\n.*\n.*$/);
  });

  it('exits with 2 where a file cannot be read', async () => {
    mkdirSync(join(folder, 'a'));
    writeFileSync(join(folder, 'a/utf-16.yaml'), `\ufeff${ROUTE}`, 'utf16le');
    expect(await checked('')).toEqual({
      status: 2,
      out: 'a/utf-16.yaml:1:1: error: is not UTF-8 text [Unreadable]',
      err: '0 objects in 1 file: 1 error, 0 warnings, 0 notes',
    });
    await expect(runCheck([join(folder, 'missing.yaml')], {})).rejects.toThrow('missing.yaml does not exist');
    await expect(runCheck([], { KUBECONFIG: join(folder, 'none') })).rejects.toThrow(
      'none cannot be read (ENOENT)',
    );
    await expect(runCheck(['--namespace', 'a', folder], {})).rejects.toThrow(
      'check: --namespace is about a cluster: remove it, or the names of files',
    );
    await expect(runCheck(['--output', 'xml', folder], {})).rejects.toThrow(
      '--output "xml" is none of text, json, sarif, github',
    );
  });

  it('prints no control character of a name', async () => {
    const target = '{group: gateway.networking.k8s.io, kind: Gateway, name: "a\\e[2J"}';
    const gateway =
      'apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec: {gatewayClassName: mesh, listeners: []}\n';
    const settings = `apiVersion: mesh-gateway.dev/v1alpha1\nkind: MeshGateway\nmetadata: {name: m}\nspec: {targetRefs: [${target}]}\n`;
    const { out } = await checked(`${gateway}---\n${settings}`);
    expect(out).toContain('Gateway default/a?[2J does not exist');
  });

  it('prints JSON', async () => {
    const { out } = await checked(ROUTE, '--output', 'json');
    const [at, text, fix] = MESSAGE.split(': ', 2).concat('add group: mesh-gateway.dev');
    expect(parseOutput(out)).toEqual({
      version: 'v1',
      problems: [
        {
          ...{ severity: 'error', reason: 'GroupMissing', at, text, fix },
          about: { kind: 'HTTPRoute', namespace: 'default', name: 'web' },
          ...{ file: 'web.yaml', line: 8, column: 11 },
        },
      ],
    });
  });

  it('prints SARIF, with the rules that it uses', async () => {
    const { out } = await checked(ROUTE, '--output', 'sarif');
    const { version, runs } = JSON.parse(out) as {
      readonly version: string;
      readonly runs: readonly { readonly results: readonly object[]; readonly tool: object }[];
    };
    expect(version).toBe('2.1.0');
    expect(runs[0]?.tool).toEqual({ driver: { name: 'mesh-gateway', rules: [{ id: 'GroupMissing' }] } });
    expect(runs[0]?.results).toEqual([
      {
        ...{ ruleId: 'GroupMissing', level: 'error', message: { text: MESSAGE } },
        locations: [
          {
            physicalLocation: {
              artifactLocation: { uri: 'web.yaml' },
              region: { startLine: 8, startColumn: 11 },
            },
          },
        ],
      },
    ]);
  });

  it('prints annotations for GitHub, in which no text of a file is a command', async () => {
    const hostile = ROUTE.replace('name: public', 'name: "a\\n::warning::b%"');
    const { out } = await checked(hostile, '--output', 'github');
    expect(out.split('\n').every(line => line.startsWith('::error file=web.yaml,line='))).toBe(true);
    expect((await checked(ROUTE, '--output', 'github')).out).toContain(
      `::error file=web.yaml,line=8,col=11,title=GroupMissing::${MESSAGE}`,
    );
  });
});
