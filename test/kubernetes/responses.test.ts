import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { collectionOf, SERVED } from '../../src/kubernetes/served-kinds.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import { watchEventIn, isServed, pageOf } from '../../src/kubernetes/reflector/responses.ts';
import { isOlder } from '../../src/kubernetes/unstructured.ts';
import { API_VERSION } from '../../src/api/generated/kinds.ts';

/** The same values in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const garbled = { event: 'failure', reason: 'Malformed', message: expect.any(String) as string };

describe('a page of a list', () => {
  const list = { kind: 'MeshEndpointsList', metadata: { resourceVersion: '7' }, items: [] };

  it.each<[string, unknown, unknown]>([
    ['is the last without a token', list, { event: 'page', objects: [], version: '7', token: '' }],
    [
      'has a token where there are more',
      { ...list, metadata: { resourceVersion: '7', continue: 'a' } },
      { token: 'a' },
    ],
    ['has no items where Go sends null', { ...list, items: null }, { objects: [] }],
    [
      'adds apiVersion and kind to its items',
      { ...list, items: [{}] },
      { objects: [{ apiVersion: API_VERSION, kind: 'MeshEndpoints' }] },
    ],
    [
      'keeps the kind of its items',
      { ...list, items: [{ kind: 'Other' }] },
      { objects: [{ kind: 'Other' }] },
    ],
    ['keeps items that are not objects', { ...list, items: [7, null] }, { objects: [7, null] }],
    ['needs a version', { ...list, metadata: {} }, garbled],
    ['needs items', { ...list, items: {} }, garbled],
    ['is not a Status', { ...list, kind: 'Status' }, garbled],
    ['is not a page of a proxy', 'please log in', garbled],
    ['is not null', null, garbled],
  ])('%s', (_sentence, answer, event) => {
    expect(pageOf(collectionOf('MeshEndpoints'), 'v1alpha1', answer)).toMatchObject(event as object);
  });

  it('may be any value', () => {
    const property = fc.property(fc.jsonValue(), answer => {
      expect(['page', 'failure']).toContain(pageOf(collectionOf('Namespace'), 'v1', answer).event);
    });
    fc.assert(property, { seed, numRuns: 1000 });
  });
});

describe('a line of a watch', () => {
  const object = { metadata: { resourceVersion: '7' } };

  it.each<[string, unknown, unknown]>([
    ['adds', { type: 'ADDED', object }, { event: 'change', change: 'put', object, version: '7' }],
    ['changes', { type: 'MODIFIED', object }, { event: 'change', change: 'put' }],
    ['removes', { type: 'DELETED', object }, { event: 'change', change: 'remove' }],
    ['is a bookmark', { type: 'BOOKMARK', object }, { event: 'bookmark', version: '7' }],
    [
      'is too old',
      { type: 'ERROR', object: { code: 410, message: 'too old' } },
      { event: 'failure', reason: 'Expired', message: 'too old' },
    ],
    [
      'has Retry-After',
      { type: 'ERROR', object: { code: 429, details: { retryAfterSeconds: 3 } } },
      { reason: 'Busy', retryAfterMs: 3000 },
    ],
    ['fails without a reason', { type: 'ERROR' }, { event: 'failure', reason: 'Failed' }],
    ['is of an unknown type', { type: 'RENAMED', object }, garbled],
    ['has no version', { type: 'ADDED', object: { metadata: {} } }, garbled],
    [
      'has a version that is none',
      { type: 'BOOKMARK', object: { metadata: { resourceVersion: 7 } } },
      garbled,
    ],
    ['has no object', { type: 'DELETED' }, garbled],
    ['is not an object', 7, garbled],
  ])('%s', (_sentence, line, event) => {
    expect(watchEventIn(line)).toMatchObject(event as object);
  });

  it('may be any value', () => {
    const property = fc.property(fc.jsonValue(), line => {
      expect(watchEventIn(line)).toMatchObject({ event: 'failure' });
    });
    fc.assert(property, { seed, numRuns: 1000 });
  });
});

describe('discovery', () => {
  const versions = [{ version: 'v1' }, { version: 'v1beta1' }];
  const groups = { kind: 'APIGroupList', groups: [{ name: SERVED.TCPRoute.group, versions }] };
  const resources = (...names: readonly string[]) => ({
    kind: 'APIResourceList',
    resources: names.map(name => ({ name })),
  });
  const get = (answers: Readonly<Record<string, unknown>>) => (path: string) =>
    path in answers ? Promise.resolve(answers[path]) : Promise.reject(new KubeError('NotFound', path));
  const v1 = `/apis/${SERVED.TCPRoute.group}/v1`;

  it.each<[string, Readonly<Record<string, unknown>>, boolean]>([
    ['a kind', { '/apis': groups, [v1]: resources('httproutes', 'tcproutes') }, true],
    ['other kinds', { '/apis': groups, [v1]: resources('httproutes') }, false],
    ['other groups', { '/apis': { ...groups, groups: [] } }, false],
    ['invalid groups', { '/apis': { kind: 'APIGroupList', groups: [7, null] } }, false],
    ['nothing', { '/apis': { kind: 'APIGroupList' } }, false],
  ])('may be %s', async (_what, answers, answer) => {
    expect(await isServed(SERVED.TCPRoute, get(answers))).toBe(answer);
  });

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['everything is 404', {}, 'NotFound'],
    ['the version is 404', { '/apis': groups }, 'NotFound'],
    ['the groups are something else', { '/apis': 'please log in' }, 'Malformed'],
    ['the version is something else', { '/apis': groups, [v1]: {} }, 'Malformed'],
  ])('fails where %s', async (_what, answers, reason) => {
    await expect(isServed(SERVED.TCPRoute, get(answers))).rejects.toMatchObject({ reason });
  });
});

describe('a version', () => {
  it.each<[string, string, boolean]>([
    ['9', '10', true],
    ['10', '9', false],
    ['10', '10', false],
    ['99999999999999999998', '99999999999999999999', true],
    ['a', 'b', false],
    ['', '5', false],
    ['5', '', false],
    ['05', '6', false],
  ])('%s before %s: %s', (version, than, answer) => {
    expect(isOlder(version, than)).toBe(answer);
  });
});
