import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode } from '../../src/api/objects/decode.ts';

/** The same values in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const metadata = {
  name: 'meshd-example-0',
  namespace: 'mesh-system',
  uid: 'u',
  resourceVersion: '7',
  labels: { 'mesh-gateway.dev/tailnet': 'example', 'controller-revision-hash': 'h' },
  creationTimestamp: '2026-01-01T00:00:00Z',
  deletionTimestamp: '2026-01-02T00:00:00Z',
};

function statusOf(status: unknown): unknown {
  const decoding = decode({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'n' }, status });
  return decoding.is === 'resource' && decoding.resource.kind === 'Pod' ? decoding.resource.status : decoding;
}

const containerOf = (status: object) =>
  statusOf({ containerStatuses: [{ name: 'relay' }, { name: 'meshd', restartCount: 2, ...status }] });

const UNKNOWN = {
  isReady: false,
  addresses: [],
  unschedulable: undefined,
  container: undefined,
  relay: undefined,
};

describe('a Pod', () => {
  it('shows its two containers apart', () => {
    const containerStatuses = [
      { name: 'relay', ready: false, restartCount: 3 },
      { name: 'meshd', ready: true, restartCount: 1 },
      { name: 'other', ready: true },
    ];
    expect(statusOf({ containerStatuses })).toMatchObject({
      container: { isReady: true, restarts: 1 },
      relay: { isReady: false, restarts: 3 },
    });
  });

  it('keeps the metadata that is read, and its status', () => {
    const annotations = { 'example.com/large': 'x' };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, annotations }, spec: {} };
    expect(decode(object)).toEqual({
      is: 'resource',
      resource: { apiVersion: 'v1', kind: 'Pod', metadata, status: UNKNOWN },
    });
  });

  it('is ready by its condition', () => {
    const ready = (status: string) => statusOf({ conditions: [{ type: 'Ready', status }] });
    expect(ready('True')).toMatchObject({ isReady: true });
    expect(ready('False')).toMatchObject({ isReady: false });
  });

  it.each([
    ['no address', undefined, []],
    ['one address', [{ ip: '10.1.2.3' }], ['10.1.2.3']],
    ['an address of each family', [{ ip: 'fd00::7' }, { ip: '10.1.2.3' }], ['fd00::7', '10.1.2.3']],
    ['no valid address', [{ ip: 'localhost' }, { ip: '' }, {}, '10.1.2.3', { ip: 'fe80::1%eth0' }], []],
    ['no list of addresses', { ip: '10.1.2.3' }, []],
  ])('has %s', (_what, podIPs, addresses) => {
    expect(statusOf({ podIP: '10.9.9.9', podIPs })).toMatchObject({ addresses });
  });

  it('shows why no node can run it', () => {
    const scheduled = (condition: object) =>
      statusOf({ conditions: [{ type: 'PodScheduled', status: 'False', message: 'no room', ...condition }] });
    expect(scheduled({ reason: 'Unschedulable' })).toMatchObject({ unschedulable: 'no room' });
    expect(scheduled({ reason: 'SchedulingGated' })).toEqual(UNKNOWN);
    expect(scheduled({ status: 'True' })).toEqual(UNKNOWN);
  });

  it.each([
    ['waits', { state: { waiting: { reason: 'ErrImagePull' } } }, { reason: 'ErrImagePull', message: '' }],
    ['runs', { state: { running: {} } }, undefined],
  ])('shows a container that %s', (_what, status, waiting) => {
    expect(containerOf(status)).toMatchObject({ container: { waiting, restarts: 2 } });
  });

  it('shows how its container ended last', () => {
    const [first, last] = [1, 2].map(exitCode => ({ reason: 'Error', message: 'why', exitCode }));
    expect(containerOf({ lastState: { terminated: first } })).toMatchObject({
      container: { lastTerminated: first },
    });
    const status = { state: { terminated: last }, lastState: { terminated: first } };
    expect(containerOf(status)).toMatchObject({ container: { lastTerminated: last } });
  });

  it('is decoded whatever its status is', () => {
    const names = [
      'conditions',
      'containerStatuses',
      'name',
      'type',
      'podIPs',
      'state',
      'waiting',
      'terminated',
    ];
    const key = fc.oneof(fc.constantFrom(...names), fc.string());
    const value = fc.letrec(tie => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom('meshd', 'Ready', 'PodScheduled', 1.5, null),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(key, tie('any'), { maxKeys: 4 }),
      ),
    })).any;
    fc.assert(
      fc.property(value, status => {
        expect(statusOf(status)).toMatchObject({ isReady: expect.any(Boolean) as boolean });
      }),
      { seed },
    );
  });
});
