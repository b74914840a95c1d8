import { describe, expect, it } from 'vitest';
import { formatProblem, severityOf } from '../../src/api/problem.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';
import { checkText, findingText } from '../support/tools/checked.ts';

/** `line severity message` of each finding. */
function findingsOf(text: string): readonly string[] {
  return checkText(text).findings.map(
    each => `${each.file === undefined ? '' : each.line} ${severityOf(each)} ${formatProblem(each)}`,
  );
}

const HEAD = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata:
  name: web
`;

/** A MeshEndpoints with one endpoint, whose port and further fields begin on line 12. */
const endpoints = (port: string, more = '') => `${HEAD}spec:
  tailnet: example.ts.net
  endpoints:
    - name: web
      meshIP: 100.64.0.1
      meshFQDN: web.example.ts.net
      protocol: HTTP
      port: ${port}
${more}`;

const PORT = 'spec.endpoints[0].port';
const NOT_A_PORT = 'is not a port (1 to 65535)';
const DROPPED = 'is not a field of MeshEndpoints and is dropped by the API server';

/** A MeshEndpoints whose tls.caRef is on line 14, and the ConfigMap that it names, with this data. */
const withCaRef = (data: Readonly<Record<string, string>>, configMap = 'ca') =>
  `${endpoints('443', '      tls:\n        caRef: {name: ca}\n').replace('HTTP', 'HTTPS')}---
apiVersion: v1
kind: ConfigMap
metadata: {name: ${configMap}}
data: ${JSON.stringify(data)}
`;

const FILES: readonly (readonly [sentence: string, text: string, findings: readonly string[]])[] = [
  ['nothing in a valid object', endpoints('80'), []],
  [
    'a note that no file shows which devices selectors match',
    `${HEAD}spec:\n  tailnet: example.ts.net\n  tagSelectors:\n    - {key: web, operator: Exists}\n`,
    [
      '8 note spec.tagSelectors: which devices match is known in the tailnet alone: once it is applied, status.endpoints lists them',
    ],
  ],
  ['nothing in a tls.caRef with certificates', withCaRef({ 'ca.crt': CERTIFICATE }), []],
  ['nothing in a tls.caRef whose ConfigMap may be elsewhere', withCaRef({}, 'other'), []],
  [
    'a ConfigMap without the key of tls.caRef',
    withCaRef({ 'root.pem': CERTIFICATE }),
    [
      '14 warning spec.endpoints[0].tls.caRef: ConfigMap default/ca has no key ca.crt with text (it has root.pem): add it, or correct tls.caRef.key',
    ],
  ],
  [
    'a meshFQDN that is not in the tailnet',
    endpoints('80').replace('web.example.ts.net', 'web.example.com'),
    [
      '10 warning spec.endpoints[0].meshFQDN is not inside the tailnet example.ts.net: write the name of the device, which `tailscale status` prints',
    ],
  ],
  [
    'a meshFQDN that only ends like a name in the tailnet',
    endpoints('80').replace('web.example.ts.net', 'web-example.ts.net'),
    [
      '10 warning spec.endpoints[0].meshFQDN is not inside the tailnet example.ts.net: write the name of the device, which `tailscale status` prints',
    ],
  ],
  [
    'nothing in the meshFQDN of an endpoint with externalTarget',
    endpoints('80', '      externalTarget: db.example.com:80\n').replace(
      'web.example.ts.net',
      'db.example.com',
    ),
    [],
  ],
  ['a fault on its line', endpoints('0'), [`12 error ${PORT}: 0 ${NOT_A_PORT}`]],
  ['a fault of YAML 1.1', endpoints('yes'), [`12 error ${PORT}: true ${NOT_A_PORT}`]],
  [
    'faults in the order of their lines',
    endpoints('0')
      .replace('100.64.0.1', '10.0.0.1')
      .replace('name: web\n      mesh', 'name: Web\n      mesh'),
    [
      "8 error spec.endpoints[0].name: \"Web\" is not a DNS label (lower-case letters, digits and '-', at most 63 characters, no '_' or '.')",
      '9 error spec.endpoints[0].meshIP: "10.0.0.1" is not a mesh address (100.64.0.0 to 100.127.255.255, or in fd7a:115c:a1e0::/48; `tailscale ip` prints it): use the address of a device of the tailnet; a service behind a subnet router has none, and cannot be an endpoint: run a proxy for it on a device',
      `12 error ${PORT}: 0 ${NOT_A_PORT}`,
    ],
  ],
  [
    'a missing field on the line of what lacks it',
    endpoints('80').replace('      protocol: HTTP\n', ''),
    ['8 error spec.endpoints[0].protocol: is required: give one of HTTP, HTTPS, TCP, UDP, TLS, gRPC'],
  ],
  [
    'a fault in flow style',
    `${HEAD}spec: {tailnet: example.ts.net, endpoints: [], paused:\n  maybe}\n`,
    ['6 error spec.paused: "maybe" is not true or false'],
  ],
  [
    'a fault in JSON',
    '{\n  "apiVersion": "mesh-gateway.dev/v1alpha1",\n  "kind": "MeshBinding",\n  "metadata": {"name": "a"},\n  "spec": {\n    "targetRefs": [],\n    "revision": "01234567"\n  }\n}\n',
    ['6 error spec.targetRefs: has 0 items, and at least 1 must be there'],
  ],
  [
    'an unknown field as a warning',
    endpoints('80', '      colour: red\n'),
    [`13 warning spec.endpoints[0].colour: ${DROPPED}`],
  ],
  [
    'a misspelt field, with a suggestion',
    endpoints('80', '      weigth: 2\n'),
    [`13 warning spec.endpoints[0].weigth: ${DROPPED}; did you mean weight?`],
  ],
  [
    'an error and a warning',
    endpoints('0', '      colour: red\n'),
    [`12 error ${PORT}: 0 ${NOT_A_PORT}`, `13 warning spec.endpoints[0].colour: ${DROPPED}`],
  ],
  [
    'an unknown kind, with a suggestion',
    HEAD.replace('MeshEndpoints', 'MeshEndpoint'),
    ['2 error kind: "MeshEndpoint" is not a kind of mesh-gateway.dev/v1alpha1; did you mean MeshEndpoints?'],
  ],
  [
    'an unknown kind without a similar one',
    HEAD.replace('MeshEndpoints', 'Gateway'),
    ['2 error kind: "Gateway" is not a kind of mesh-gateway.dev/v1alpha1'],
  ],
  [
    'a kind that every object inherits',
    HEAD.replace('MeshEndpoints', 'toString'),
    ['2 error kind: "toString" is not a kind of mesh-gateway.dev/v1alpha1'],
  ],
  [
    'another version',
    endpoints('80').replace('v1alpha1', 'v1'),
    ['1 error apiVersion: "mesh-gateway.dev/v1" is not mesh-gateway.dev/v1alpha1'],
  ],
  [
    'text that is no YAML',
    `${HEAD}spec: [\n`,
    ['6 error the indentation does not fit what is around it, or a bracket is not closed'],
  ],
  [
    'the fault of one document beside another that is right',
    `${endpoints('80')}---\n${endpoints('99999')}`,
    [`25 error ${PORT}: 99999 ${NOT_A_PORT}`],
  ],
];

describe('check finds', () => {
  it.each(FILES)('%s', (_sentence, text, findings) => {
    expect(findingsOf(text)).toEqual(findings);
  });
});

const FOREIGN: readonly (readonly [sentence: string, text: string])[] = [
  ['an object of another group', 'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: nonsense\n'],
  ['a kind of the same name in another group', 'apiVersion: example.com/v1\nkind: MeshEndpoints\n'],
  ['a group that has ours as a prefix', 'apiVersion: mesh-gateway.development/v1\nkind: MeshEndpoints\n'],
  ['a list', '- a\n- b\n'],
  ['a text', 'hello\n'],
  ['an empty List', 'apiVersion: v1\nkind: List\nitems: []\n'],
  ['a List without items', 'apiVersion: v1\nkind: List\n'],
  ['an empty document', '---\n---\n'],
];

describe('check ignores', () => {
  it.each(FOREIGN)('%s', (_sentence, text) => {
    const { findings, objects } = checkText(text);
    expect(findings.filter(({ reason }) => reason !== 'NothingToCheck')).toEqual([]);
    expect(objects).toBe(0);
  });
});

describe('check reads the items of a List', () => {
  const item = (text: string) => text.replace(/\n$/, '').replaceAll('\n', '\n    ');
  const list = `apiVersion: v1
kind: List
items:
  - ${item(endpoints('80'))}
  - apiVersion: v1
    kind: Secret
  - ${item(endpoints('0', '      colour: red'))}
`;

  it('and reports the line of each finding in its items', () => {
    expect(findingsOf(list)).toEqual([
      `29 error ${PORT}: 0 ${NOT_A_PORT}`,
      `30 warning spec.endpoints[0].colour: ${DROPPED}`,
    ]);
  });

  it('and counts the items of our group', () => {
    expect(checkText(list).objects).toBe(2);
  });

  it('but refuses a list that is none, as kubectl does', () => {
    const { findings } = checkText(list.replace(/^[^]*items:\n/, ''));
    expect(findings.map(findingText)).toEqual([expect.stringMatching(/^error Syntax: .* kind: List/)]);
  });
});

describe('check counts', () => {
  it('objects of our group, valid or not, of a known kind or not', () => {
    const text = [
      endpoints('80'),
      endpoints('0'),
      HEAD.replace('MeshEndpoints', 'Mesh'),
      'kind: Secret\n',
    ].join('---\n');
    expect(checkText(text).objects).toBe(3);
  });

  it('objects of Gateway API', () => {
    const kinds = ['Gateway', 'HTTPRoute', 'ReferenceGrant'];
    expect(
      checkText(kinds.map(kind => `apiVersion: gateway.networking.k8s.io/v1\nkind: ${kind}\n`).join('---\n'))
        .objects,
    ).toBe(3);
  });

  it('those in a file that is partly unreadable', () => {
    expect(checkText(`${endpoints('80')}---\na: [\n`).objects).toBe(1);
  });
});

describe('check is not fooled by', () => {
  const SLIPS = [
    '',
    'apiVersion: mesh-gateway.dev\n',
    'apiVersion: Mesh-Gateway.dev/v1alpha1\n',
    'apiVersion: meshgateway.dev/v1\n',
  ];

  it.each(SLIPS)('a kind of our group with the line "%s"', line => {
    const { findings } = checkText(
      `${line}kind: MeshTailnet\nmetadata: {name: a}\nspec: {tailnet: example.ts.net}\n`,
    );
    expect(findings.map(each => formatProblem(each).split(':')[0])).toEqual(['apiVersion']);
  });

  it('a kind that is not a string', () => {
    const { findings } = checkText('apiVersion: mesh-gateway.dev/v1alpha1\nkind: {toString: x}\n');
    expect(findings.map(formatProblem)).toEqual([
      'kind: is required: give a kind of mesh-gateway.dev/v1alpha1',
    ]);
  });
});
