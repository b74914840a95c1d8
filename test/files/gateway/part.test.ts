import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { partNameOf, hasValidName, kindOfPart, textOfUserObject } from '../../../src/files/gateway/part.ts';
import { kindSupport } from '../../../src/files/gateway/kinds.ts';
import type { GeneratedKind } from '../../../src/files/gateway/kinds.ts';

const GATEWAY = 'gateway.networking.k8s.io';
const EXTENDED = 'gateway.envoyproxy.io';

const FATES = [
  { group: GATEWAY, kind: 'HTTPRoute', becomes: `${GATEWAY}/v1` },
  { group: GATEWAY, kind: 'GRPCRoute', becomes: `${GATEWAY}/v1` },
  { group: GATEWAY, kind: 'TLSRoute', becomes: `${GATEWAY}/v1` },
  { group: GATEWAY, kind: 'TCPRoute', becomes: `${GATEWAY}/v1` },
  { group: GATEWAY, kind: 'UDPRoute', becomes: `${GATEWAY}/v1` },
  { group: GATEWAY, kind: 'BackendTLSPolicy', becomes: `${GATEWAY}/v1` },
  { group: GATEWAY, kind: 'ReferenceGrant', becomes: `${GATEWAY}/v1beta1` },
  { group: EXTENDED, kind: 'EnvoyProxy', becomes: `${EXTENDED}/v1alpha1` },
  { group: EXTENDED, kind: 'Backend', becomes: `${EXTENDED}/v1alpha1` },
  { group: '', kind: 'Secret', becomes: 'v1' },
  { group: '', kind: 'ConfigMap', becomes: 'v1' },
  { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', becomes: 'mesh-gateway.dev/v1alpha1' },
  { group: 'mesh-gateway.dev', kind: 'MeshBinding', becomes: 'mesh-gateway.dev/v1alpha1' },
  { group: 'mesh-gateway.dev', kind: 'MeshTailnet', becomes: 'ours' },
  { group: '', kind: 'Namespace', becomes: 'ours' },
  { group: '', kind: 'Service', becomes: 'left out: Envoy Gateway does not use Services from files' },
  { group: 'apps', kind: 'Deployment', becomes: 'left out: Envoy Gateway does not read this kind' },
  { group: GATEWAY, kind: 'ListenerSet', becomes: 'left out: Envoy Gateway does not read this kind' },
  { group: EXTENDED, kind: 'EnvoyGateway', becomes: 'left out: Envoy Gateway does not read this kind' },
  { group: 'example.com', kind: 'HTTPRoute', becomes: 'left out: Envoy Gateway does not read this kind' },
  { group: '__proto__', kind: 'constructor', becomes: 'left out: Envoy Gateway does not read this kind' },
  { group: GATEWAY, kind: 'toString', becomes: 'left out: Envoy Gateway does not read this kind' },
];

describe('the support of a kind', () => {
  it.each(FATES)('$group $kind: $becomes', ({ group, kind, becomes }) => {
    const fate = kindSupport(group, kind);
    const shown =
      fate.is === 'written' ? fate.as.apiVersion : fate.is === 'ours' ? 'ours' : `left out: ${fate.why}`;
    expect(shown.startsWith(becomes)).toBe(true);
  });
});

/** The same in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
const name = fc
  .array(label, { minLength: 1, maxLength: 4 })
  .map(labels => labels.join('.').slice(0, 253))
  .filter(text => /[a-z0-9]$/.test(text));
const subject = fc.record({
  kind: fc.constantFrom('HTTPRoute', 'Secret', 'GatewayClass'),
  namespace: fc.oneof(fc.constant(''), label),
  name,
});

describe('the name of a part', () => {
  it('is one word, and unique', () => {
    fc.assert(
      fc.property(subject, subject, (a, b) => {
        expect(hasValidName(a)).toBe(true);
        expect(partNameOf(a)).toMatch(/^[-A-Za-z0-9./]+$/);
        expect(kindOfPart(partNameOf(a))).toBe(a.kind);
        expect(partNameOf(a) === partNameOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { seed },
    );
  });

  it.each(['../up', 'a/b', '.hidden', 'A', '', 'a\u0000', 'a'.repeat(254), 'ends-'])(
    'is not made of the name %j',
    given => {
      expect(hasValidName({ kind: 'Secret', namespace: 'default', name: given })).toBe(false);
    },
  );

  it.each(['../up', 'a.b', 'A', 'a'.repeat(64)])('is not made of the namespace %j', namespace => {
    expect(hasValidName({ kind: 'Secret', namespace, name: 'a' })).toBe(false);
  });
});

describe('the text of a part', () => {
  it('has everything that was written except what an API server adds, in the version that Envoy Gateway stores', () => {
    const whole = {
      apiVersion: `${GATEWAY}/v1alpha2`,
      kind: 'TCPRoute',
      metadata: {
        name: 'db',
        labels: { a: 'b' },
        annotations: { c: 'd' },
        finalizers: ['x'],
        uid: 'y',
        resourceVersion: '1',
        generation: 7,
        managedFields: [],
      },
      spec: { rules: [{ backendRefs: [{ name: 'x', port: 1, future: { field: true } }] }] },
      status: { parents: [] },
    };
    const fate = kindSupport(GATEWAY, 'TCPRoute');
    const text =
      fate.is === 'written'
        ? textOfUserObject({ kind: 'TCPRoute', namespace: 'team', name: 'db', whole }, fate.as)
        : '';
    expect(JSON.parse(text)).toEqual({
      apiVersion: `${GATEWAY}/v1`,
      kind: 'TCPRoute',
      metadata: { name: 'db', namespace: 'team', labels: { a: 'b' }, annotations: { c: 'd' } },
      spec: whole.spec,
    });
  });
});

describe('a policy that names a route', () => {
  const as: GeneratedKind = { apiVersion: `${EXTENDED}/v1alpha1`, scope: 'Namespaced' };
  const specOf = (spec: object): unknown => {
    const policy = { kind: 'SecurityPolicy', namespace: 'default', name: 'guard' };
    return (JSON.parse(textOfUserObject({ ...policy, whole: { spec } }, as)) as { spec: unknown }).spec;
  };
  const target = (kind: string, name: string) => ({ group: GATEWAY, kind, name });
  const [web, other] = [target('HTTPRoute', 'web'), target('HTTPRoute', 'web.1.mesh-gateway.dev')];
  const rule = { sectionName: 'rule' };

  it.each([
    ['its other name too', { targetRefs: [web] }, { targetRefs: [web, other] }],
    ['also where it names one alone', { targetRef: web, cors: {} }, { cors: {}, targetRefs: [web, other] }],
    [
      'a rule of it',
      { targetRefs: [{ ...web, ...rule }] },
      {
        targetRefs: [
          { ...web, ...rule },
          { ...other, ...rule },
        ],
      },
    ],
    ['no Gateway', { targetRefs: [target('Gateway', 'web')] }, { targetRefs: [target('Gateway', 'web')] }],
    ['nothing that is not there', { targetRefs: 'all' }, { targetRefs: 'all' }],
  ])('names %s', (_what, given, written) => {
    expect(specOf(given)).toEqual(written);
  });
});

describe('reserved names', () => {
  it.each([
    ['web.1.mesh-gateway.dev', false],
    ['web.22.mesh-gateway.dev', false],
    ['web.mesh-gateway.dev', true],
    ['web.0.mesh-gateway.dev', true],
    ['1.mesh-gateway.dev', true],
  ])('%s can be declared: %s', (name, isDeclared) => {
    expect(hasValidName({ kind: 'HTTPRoute', namespace: 'default', name })).toBe(isDeclared);
  });
});
