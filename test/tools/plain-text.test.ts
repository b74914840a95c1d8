import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCheck } from '../../src/tools/check/command.ts';
import { jsonText, plainText } from '../../src/tools/plain-text.ts';
import { runTrace } from '../../src/tools/trace/command.ts';
import { makeFolders } from '../support/files/folder.ts';
import { captureConsole } from '../support/tools/console.ts';

/** ESC, the CSI of C1, DEL, a carriage return, and an override of the direction. */
const HOSTILE = '\u001b[2J\u009b2J\u007f\r\u202e';
const WRITTEN = String.raw`\e[2J\x9b2J\x7f\r\u202e`;
const CONTROL = /[^\P{Cc}\n]|\p{Bidi_Control}/u;

/** Objects with control characters where names, values and messages are printed. */
const OBJECTS = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata: {name: web}
spec: {tailnet: "a${WRITTEN}", "b${WRITTEN}": 1}
---
apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata: {name: example}
spec: {tailnet: example.ts.net}
status: {conditions: [{type: PoolReady, status: "False", reason: Bad, message: "c${WRITTEN}"}]}
---
apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata: {name: api}
spec:
  tailnet: example.ts.net
  endpoints: [{name: api, meshIP: 100.64.0.1, meshFQDN: api.example.ts.net, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public}
spec: {gatewayClassName: envoy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, annotations: {mesh-gateway.dev/backend-type: mesh}}
spec:
  parentRefs: [{name: public}]
  rules:
    - backendRefs:
        - {group: mesh-gateway.dev, kind: MeshEndpoints, name: api, port: 80}
        - {group: mesh-gateway.dev, kind: MeshEndpoints, name: "d${WRITTEN}", port: 80}
        - {name: "e${WRITTEN}", port: 80}
`;

const printed = captureConsole();

describe('no control character of an object is printed by', () => {
  it.each<[command: string, run: (folder: string) => Promise<number>]>([
    ['check', folder => runCheck([folder], {})],
    ['check --output json', folder => runCheck([folder, '--output', 'json'], {})],
    ['check --output sarif', folder => runCheck([folder, '--output', 'sarif'], {})],
    ['check --output github', folder => runCheck([folder, '--output', 'github'], {})],
    ['trace --all', folder => runTrace(['--all', '--file', folder], {})],
    ['trace --all --output json', folder => runTrace(['--all', '--file', folder, '--output', 'json'], {})],
    ['trace', folder => runTrace(['http://a/', '--file', folder], {})],
    ['trace --output json', folder => runTrace(['http://a/', '--file', folder, '--output', 'json'], {})],
  ])('%s', async (_command, run) => {
    const { folder } = makeFolders();
    mkdirSync(folder);
    writeFileSync(join(folder, `f\u001b[2J.yaml`), OBJECTS);
    await run(folder);
    const all = [...printed.out, ...printed.err].join('\n');
    expect(all).toContain('2J');
    expect(CONTROL.exec(all)).toBeNull();
  });
});

describe('a text for a terminal', () => {
  it('has its line ends and all letters', () => {
    expect(plainText(`a\n日本語 é 🚀 ${HOSTILE}b`)).toBe('a\n日本語 é 🚀 ?[2J?2J???b');
  });

  it('as JSON has the value that it had', () => {
    const text = jsonText({ a: HOSTILE, b: ['日本語'] });
    expect(CONTROL.exec(text)).toBeNull();
    expect(JSON.parse(text)).toEqual({ a: HOSTILE, b: ['日本語'] });
  });
});
