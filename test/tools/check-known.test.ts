import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import type { Kinds } from '../../src/api/generated/types.ts';
import type { Service } from '../../src/api/objects/backends.ts';
import type { Reason } from '../../src/api/reasons.ts';
import { isDecided, isElsewhere, otherBackendProblem } from '../../src/tools/check/known.ts';
import type { KnownObjects } from '../../src/tools/check/known.ts';
import { isUndiscovered, withExpected } from '../../src/tools/check/undiscovered.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';

const WEB = keyOf({ kind: 'MeshEndpoints', namespace: 'default', name: 'web' });

const INVALID = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' } as const;

const known = (more: Partial<KnownObjects> = {}): KnownObjects => ({
  hasStatus: () => true,
  has: () => true,
  isInvalid: () => false,
  invalidFor: () => undefined,
  hasUnknownEndpoints: () => false,
  service: () => undefined,
  backend: () => undefined,
  ownersOfListeners: () => new Map(),
  parentProblems: () => [],
  ...more,
});

describe('a problem is decided', () => {
  const isSo = (reason: Reason, more?: Partial<KnownObjects>, object?: typeof WEB) =>
    isDecided({ reason, text: 'is wrong', ...(object && { object }) }, known(more));

  it.each([
    ['BackendNotFound', 'MeshEndpoints'],
    ['TailnetNotFound', 'MeshTailnet'],
    ['NamespaceNotAllowed', 'Namespace'],
    ['CertificateNotFound', 'ConfigMap'],
    ['ServiceInRule', 'EnvoyProxy'],
  ] as const)('for %s where all of %s are known, which may be elsewhere', (reason, kind) => {
    expect(isSo(reason)).toBe(true);
    expect(isSo(reason, { has: each => each !== kind })).toBe(false);
    expect(isElsewhere({ reason, text: '' })).toBe(true);
  });

  it.each([
    ['ProxyUnknown', 'MeshTailnet'],
    ['RelayPortMissing', 'MeshEndpoints'],
    ['ExternalTargetNotResolved', 'MeshEndpoints'],
  ] as const)('for %s where %s have their status', (reason, kind) => {
    expect(isSo(reason)).toBe(true);
    expect(isSo(reason, { hasStatus: each => each !== kind })).toBe(false);
    expect(isElsewhere({ reason, text: '' })).toBe(false);
  });

  it('for a port where the endpoints of the object are known', () => {
    const hasUnknownEndpoints = (key: unknown) => key === WEB;
    expect(isSo('PortNotFound', { hasUnknownEndpoints }, WEB)).toBe(false);
    expect(isSo('PortNotFound', { invalidFor: () => INVALID }, WEB)).toBe(true);
    expect(isSo('PortNotFound', { hasUnknownEndpoints })).toBe(true);
    expect(isElsewhere({ reason: 'PortNotFound', text: '' })).toBe(true);
  });

  it('for an object that does not exist unless it is there and not valid, which is a problem by itself', () => {
    const invalidFor = (reason: Reason) => (reason === 'BackendNotFound' ? INVALID : undefined);
    expect(isSo('BackendNotFound', { invalidFor }, WEB)).toBe(false);
    expect(isSo('BackendNotFound', { hasUnknownEndpoints: () => true }, WEB)).toBe(true);
    expect(isSo('ProtocolMismatch', { invalidFor }, WEB)).toBe(true);
  });
});

describe('a reference to a Service', () => {
  const ref = { ...{ group: '', kind: 'Service', namespace: 'default', name: 'shop' }, weight: 1, port: 80 };
  const service = (...ports: readonly number[]) => ({
    service: () => ({ ports: ports.map(port => ({ port, protocol: 'TCP' })) }) as unknown as Service,
  });

  it.each([
    ['to one that does not exist', ref, {}, 'Service default/shop does not exist'],
    ['to a port that it lacks', ref, service(81), 'port 80 is not a port of Service default/shop'],
    ['to a port that it has', ref, service(81, 80), undefined],
    ['to all of it', { ...ref, port: undefined }, service(81), undefined],
    ['of another group', { ...ref, group: 'example.com' }, {}, undefined],
    ['to another kind', { ...ref, kind: 'ConfigMap' }, {}, undefined],
    ['where not all Services are known', ref, { has: (kind: string) => kind !== 'Service' }, undefined],
  ])('%s', (_, given, more, text) => {
    expect(otherBackendProblem(given as typeof ref, known(more))?.text).toBe(text);
  });

  it('has the ports that there are, or that there are none, as its fix', () => {
    const fixFor = (...ports: readonly number[]) => otherBackendProblem(ref, known(service(...ports)))?.fix;
    expect([fixFor(81, 82), fixFor()]).toEqual([
      'use one that it has (81, 82)',
      'use one that it has (none)',
    ]);
  });
});

describe('an object with selectors in files', () => {
  const found = (status?: object, template: object = { port: 8080, protocol: 'HTTP' }) => {
    const spec = {
      endpoints: [],
      tagSelectors: [{ key: 'web', operator: 'Exists' }],
      endpointTemplate: template,
    };
    const object = named(meshEndpoints(spec), 'default/web');
    return resourceOf({ ...object, ...(status && { status }) }) as Kinds['MeshEndpoints'];
  };
  const [listed, ofAnother] = ['example.ts.net', 'other.ts.net'].map(tailnet => ({ discovery: { tailnet } }));

  it.each([
    ['without a status', found(), true],
    ['whose status is of another tailnet', found(ofAnother), true],
    ['whose devices are listed', found(listed), false],
    ['without selectors', resourceOf(named(meshEndpoints(), 'default/web')) as Kinds['MeshEndpoints'], false],
  ])('%s has undiscovered devices: %#', (_, object, isSo) => {
    expect(isUndiscovered(object)).toBe(isSo);
    const expected = withExpected(object, 0x1234);
    if (isSo) expect(expected.status?.endpoints).toMatchObject([{ address: '100.127.18.52:8080' }]);
    else expect(expected).toBe(object);
  });

  it.each([{ port: 8080 }, { protocol: 'HTTP' }])('is not judged by a template of %j', template => {
    const object = found(undefined, template);
    expect(withExpected(object, 1)).toBe(object);
  });
});
