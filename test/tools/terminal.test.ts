import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCheck } from '../../src/tools/check/command.ts';
import { formatLines } from '../../src/tools/doctor/command.ts';
import { lookOf } from '../../src/tools/terminal.ts';
import { runTrace } from '../../src/tools/trace/command.ts';
import { makeFolders } from '../support/files/folder.ts';
import { captureConsole } from '../support/tools/console.ts';

const OBJECTS = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata: {name: web}
spec: {tailnet: example.ts.net, endpoints: [{name: web, meshIP: 100.64.0.1, meshFQDN: web.example.ts.net, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: web, port: 81}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public}
spec: {gatewayClassName: mesh, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata: {name: example}
spec: {tailnet: example.ts.net}
`;

const printed = captureConsole();
const stdout = process.stdout as { isTTY: boolean | undefined; columns: number | undefined };
const before = { isTTY: stdout.isTTY, columns: stdout.columns };
let file = '';

beforeEach(() => {
  const { folder } = makeFolders();
  mkdirSync(folder);
  file = join(folder, 'web.yaml');
  writeFileSync(file, OBJECTS);
});
afterEach(() => void Object.assign(stdout, before));

/** What a command prints on a terminal of this width. */
async function onTerminal(columns: number, run: () => Promise<number>): Promise<readonly string[]> {
  Object.assign(stdout, { isTTY: true, columns });
  await run();
  return printed.out.join('\n').replaceAll(file, 'web.yaml').split('\n');
}

describe('on a terminal', () => {
  it('check has colours, fits the width, and has the fix on a line of its own', async () => {
    const lines = await onTerminal(80, () => runCheck([file], {}));
    expect(lines.join('\n')).toContain('\u001b[1m\u001b[31merror:');
    const plain = lines.map(stripVTControlCharacters);
    expect(plain.filter(line => line.length > 80 && !line.includes(' | '))).toEqual([]);
    expect(plain).toContain('    fix: use one that it has (it has 80)');
  });

  it('trace has them, too', async () => {
    const lines = await onTerminal(80, () => runTrace(['http://a/', '--file', file], {}));
    const plain = lines.map(stripVTControlCharacters);
    expect(lines.join('\n')).toContain('\u001b[1m\u001b[31mBROKEN');
    expect(plain.filter(line => line.length > 80)).toEqual([]);
    expect(plain.slice(-3)).toEqual([
      '                  fix: use one that it has (it has 80)',
      '',
      'no request reaches an endpoint',
    ]);
  });

  it('trace ends with what becomes of the requests, also where a rule redirects them', async () => {
    const rules = 'rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]';
    writeFileSync(file, OBJECTS.replace(/rules: .*/, rules));
    const lines = await onTerminal(80, () => runTrace(['http://a/', '--file', file], {}));
    expect(lines.at(-1)).toBe('all requests are redirected');
    const filter = '{group: gateway.envoyproxy.io, kind: HTTPRouteFilter, name: teapot}';
    writeFileSync(
      file,
      OBJECTS.replace(/rules: .*/, `rules: [{filters: [{type: ExtensionRef, extensionRef: ${filter}}]}]`),
    );
    const answered = await onTerminal(80, () => runTrace(['http://a/', '--file', file], {}));
    expect(answered.at(-1)).toBe('all requests are answered by Envoy itself');
  });

  it('trace --all has them, too', async () => {
    const lines = await onTerminal(80, () => runTrace(['--all', '--file', file], {}));
    const plain = lines.map(stripVTControlCharacters);
    expect(lines.join('\n')).toContain('\u001b[1m\u001b[31mnot used');
    expect(plain.filter(line => line.length > 80)).toEqual([]);
    expect(plain).toContain('      fix: use one that it has (it has 80)');
    expect(plain.at(-1)).toBe('1 route: no request reaches an endpoint');
  });

  it('trace --all has an endpoint on two lines where it is wider, and on one elsewhere', async () => {
    const pool = 'mode: External, addresses: ["192.168.100.100:1055"]';
    writeFileSync(
      file,
      OBJECTS.replace('port: 81', 'port: 80').replace(
        '{tailnet: example.ts.net}',
        `{tailnet: example.ts.net, pool: {${pool}}}`,
      ),
    );
    const endpointIn = (lines: readonly string[]) =>
      lines.filter(line => /100\.64|backend 0/.test(line)).map(stripVTControlCharacters);
    const parts = ['100.64.0.1:80  through 192.168.100.100:1055', 'backend 0, weight 1, priority 0, HEALTHY'];
    expect(endpointIn(await onTerminal(80, () => runTrace(['--all', '--file', file], {})))).toEqual([
      `    ${parts[0]}`,
      `      ${parts[1]}`,
    ]);
    printed.out.length = 0;
    expect(endpointIn(await onTerminal(200, () => runTrace(['--all', '--file', file], {})))).toEqual([
      `    ${parts.join('  ')}`,
    ]);
  });

  it('doctor wraps what it found, and never a command to copy', () => {
    const [text, fix] = [`${'word '.repeat(30)}end`, `kubectl ${'--flag '.repeat(30)}`];
    const lines = formatLines([{ check: 'hook', is: 'failed', text, fix }], { hasColor: false, columns: 80 });
    const [first = '', ...others] = lines.split('\n');
    expect(first).toMatch(/^failed +hook +word/);
    expect(first.length).toBeLessThanOrEqual(80);
    expect(others[0]).toMatch(/^ {36}word/);
    expect(others.at(-1)).toBe(`               ${fix}`);
  });

  it('NO_COLOR and --color never print no colour', async () => {
    const escape = '\u001b[';
    expect((await onTerminal(80, () => runCheck([file], { NO_COLOR: '1' }))).join('\n')).not.toContain(
      escape,
    );
    expect((await onTerminal(80, () => runCheck(['--color', 'never', file], {}))).join('\n')).not.toContain(
      escape,
    );
  });
});

describe('in a pipe', () => {
  it('there is a line for each finding, without colours unless they are wanted', async () => {
    Object.assign(stdout, { isTTY: undefined });
    await runCheck([file], {});
    const [line = ''] = printed.out.join('\n').split('\n');
    expect(line).toMatch(/: error: spec\.rules\[0\].*: use one that it has \(it has 80\) \[PortNotFound\]$/);
    await runCheck(['--color', 'always', file], {});
    expect(printed.out.at(-1)).toContain('\u001b[31m');
  });

  it('refuses another value of --color', () => {
    expect(() => lookOf('check', 'blue', {})).toThrow('check: --color "blue" is none of auto, always, never');
  });
});
