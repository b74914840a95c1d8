import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EdsDeps, EdsOptions } from '../../../src/extension/eds/server.ts';
import { DeltaDiscoveryRequestSchema } from '../../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import { EdsFixture } from '../../support/extension/eds-fixture.ts';
import { ASSIGNMENT_TYPE } from '../../support/extension/envoy.ts';
import { clusterSnapshot, objectOf, MemorySnapshots } from '../../support/extension/memory-snapshots.ts';

/** The same bytes in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const GATEWAY = 'default/edge';
const WEB = 'httproute/default/web/rule/0';

function scene(deps: Pick<EdsDeps, 'unusedOfMixedRules'> = {}, options: EdsOptions = {}) {
  const snapshots = new MemorySnapshots();
  snapshots.set(WEB, GATEWAY, [80]);
  return { snapshots, scene: new EdsFixture({ snapshots, ...deps }, options) };
}

describe('the ACK or NACK of a response', () => {
  it('is counted', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]).ack();
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    envoy.ack('no');
    await expect(one.metric('eds_answers_total', { answer: 'ack' })).resolves.toBe(1);
    await expect(one.metric('eds_answers_total', { answer: 'nack' })).resolves.toBe(1);
    await expect(one.metric('eds_pushes_total')).resolves.toBe(2);
  });

  it('is logged if it is a NACK, and the resource is not sent again until it changes', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]).ack('a locality has no weight');
    await one.clock.advance(60_000);
    expect(one.lines).toMatchObject([
      {
        level: 'warn',
        reason: 'EndpointsRejected',
        gateway: GATEWAY,
        clusters: [WEB],
        error: 'a locality has no weight',
        nacks: 1,
      },
    ]);
    expect(envoy.pushed).toEqual([[WEB]]);
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(envoy.pushed).toEqual([[WEB], [WEB]]);
  });

  it('is logged at most once a second, with the number of NACKs, and truncated', async () => {
    const { scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    for (let n = 0; n < 100; n++) envoy.ack('x'.repeat(100_000)).subscribe(WEB);
    expect(one.lines).toHaveLength(1);
    expect(JSON.stringify(one.lines).length).toBeLessThan(2000);
    await one.clock.advance(1000);
    envoy.ack('again');
    expect(one.lines[1]).toMatchObject({ nacks: 100, error: 'again' });
  });

  it.each(['2', '0', '-1', 'x', '1e999', ' '])('is not counted with an unknown nonce: %j', async nonce => {
    const { scene: one } = scene();
    one.envoy().begin(GATEWAY, [WEB]).request({ responseNonce: nonce });
    await expect(one.metric('eds_answers_total', { answer: 'ack' })).resolves.toBe(0);
  });

  it('is counted once for each response', async () => {
    const { scene: one } = scene();
    one.envoy().begin(GATEWAY, [WEB]).ack().ack();
    await expect(one.metric('eds_answers_total', { answer: 'ack' })).resolves.toBe(1);
  });
});

const first = { node: { cluster: GATEWAY }, typeUrl: ASSIGNMENT_TYPE, resourceNamesSubscribe: [WEB] };

describe('a stream', () => {
  it.each([
    ['of another type', { ...first, typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster' }],
    ['to everything', { ...first, resourceNamesSubscribe: ['*'] }],
    ['to everything by an empty list', { ...first, resourceNamesSubscribe: [] }],
    ['to a cluster without a name', { ...first, resourceNamesSubscribe: [''] }],
    ['to a cluster with a very long name', { ...first, resourceNamesSubscribe: ['x'.repeat(513)] }],
    ['without a node', { typeUrl: ASSIGNMENT_TYPE, resourceNamesSubscribe: [WEB] }],
    ['of a Gateway without a name', { ...first, node: { id: 'a', cluster: '' } }],
    ['of a Gateway with a very long name', { ...first, node: { cluster: 'x'.repeat(513) } }],
  ])('%s ends with INVALID_ARGUMENT', (_what, request) => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().request(request);
    expect(envoy.ended).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect([envoy.pushed, snapshots.watched]).toEqual([[], 0]);
  });

  it('may leave out the type, and the node after the first request', () => {
    const { scene: one } = scene();
    const envoy = one
      .envoy()
      .request({ ...first, typeUrl: '' })
      .request({ responseNonce: '1' });
    expect([envoy.pushed, envoy.ended]).toEqual([[[WEB]], undefined]);
  });

  it('that later subscribes to everything ends as well, without another response', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]).subscribe('*');
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    envoy.subscribe(WEB);
    expect(envoy.ended).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect([envoy.pushed, snapshots.watched]).toEqual([[[WEB]], 0]);
  });

  it.each([
    ['bytes', Uint8Array.of(255, 255, 255)],
    ['a truncated field', Uint8Array.of(0x1a, 200, 1, 65)],
    ['invalid UTF-8', Uint8Array.of(0x12, 2, 0xc3, 0x28)],
    ['unterminated groups', new Uint8Array(1024 * 1024).fill(0x0b)],
    ['more than 4 MB', new Uint8Array(4 * 1024 * 1024 + 1)],
    ['two million empty names', new Uint8Array(4 * 1024 * 1024).map((_, n) => (n % 2 === 0 ? 0x1a : 0))],
  ])('of garbage (%s) ends with INVALID_ARGUMENT', (_what, message) => {
    const envoy = scene().scene.envoy().raw(message);
    expect(envoy.ended).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('ends with a status for any bytes', async () => {
    const good = toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, first));
    const aMutation = fc.record({ at: fc.nat(good.length - 1), to: fc.nat(255) });
    const aMessage = fc.oneof(
      fc.uint8Array({ maxLength: 50 }),
      fc.array(aMutation, { minLength: 1, maxLength: 3 }).map(mutations => {
        const copy = Uint8Array.from(good);
        for (const { at, to } of mutations) copy[at] = to;
        return copy;
      }),
    );
    const { snapshots, scene: one } = scene();
    const property = fc.property(fc.array(aMessage, { maxLength: 5 }), messages => {
      const envoy = one.envoy().begin(GATEWAY, [WEB]);
      for (const message of messages) envoy.raw(message);
      if (envoy.ended) expect(envoy.ended.code).toBe('INVALID_ARGUMENT');
      else envoy.disconnect();
      expect(snapshots.watched).toBe(0);
    });
    fc.assert(property, { seed, numRuns: 2000 });
    await expect(one.metric('eds_streams')).resolves.toBe(0);
  });

  it('has at most 10,000 subscriptions', () => {
    const { snapshots, scene: one } = scene();
    const names = Array.from({ length: 10_001 }, (_, n) => `c${n}`);
    expect(one.envoy().begin(GATEWAY, names.slice(1)).ended).toBeUndefined();
    expect(one.envoy().begin(GATEWAY, names).ended).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    expect(snapshots.watched).toBe(10_000);
  });

  it('has fewer if all streams together have too many', () => {
    const { snapshots, scene: one } = scene({}, { maxSubscriptions: 3 });
    const envoy = one.envoy().begin(GATEWAY, ['a', 'b']);
    expect(one.envoy().begin(GATEWAY, ['c', 'd']).ended).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    expect(envoy.subscribe('c').ended).toBeUndefined();
    expect(snapshots.watched).toBe(3);
  });
});

describe('the metrics of EDS', () => {
  it('count open streams', async () => {
    const { scene: one } = scene();
    const envoys = [one.envoy().begin(GATEWAY, [WEB]), one.envoy().begin(GATEWAY, [WEB])];
    await expect(one.metric('eds_streams')).resolves.toBe(2);
    envoys[0]?.disconnect();
    await expect(one.metric('eds_streams')).resolves.toBe(1);
  });

  it('measure the time from a change to its push, but not that of an initial response', async () => {
    const { snapshots, scene: one } = scene();
    one.envoy().begin(GATEWAY, [WEB]);
    await expect(one.metric('eds_push_lag_seconds_count')).resolves.toBe(0);
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    await expect(one.metric('eds_push_lag_seconds_count')).resolves.toBe(1);
    await expect(one.metric('eds_push_lag_seconds_sum')).resolves.toBeCloseTo(0.005);
  });

  it('count unused backends of watched clusters by reason, once for all Gateways', async () => {
    const { snapshots, scene: one } = scene();
    const unused = [
      { reason: 'ProtocolMismatch', text: '', object: objectOf(0), endpoint: 'a' },
      { reason: 'ProtocolMismatch', text: '', object: objectOf(0), endpoint: 'b' },
      { reason: 'BackendNotFound', text: '', object: objectOf(1) },
    ] as const;
    for (const gateway of [GATEWAY, 'default/other']) {
      snapshots.set(WEB, gateway, clusterSnapshot(WEB, [], unused));
      one.envoy().begin(gateway, [WEB]);
    }
    await expect(one.metric('unresolved_references', { reason: 'ProtocolMismatch' })).resolves.toBe(2);
    await expect(one.metric('unresolved_references', { reason: 'BackendNotFound' })).resolves.toBe(1);
    const elsewhere = {
      cluster: 'tcproute/default/raw/rule/-1',
      unused: [{ ...unused[2], reason: 'MixedBackends' as const }],
    };
    const { scene: other } = scene({ unusedOfMixedRules: () => [elsewhere] });
    await expect(other.metric('unresolved_references', { reason: 'MixedBackends' })).resolves.toBe(1);
  });
});
