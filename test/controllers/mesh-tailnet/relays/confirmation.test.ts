import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/api/problem.ts';
import { confirm, UNCONFIRMED } from '../../../../src/controllers/mesh-tailnet/relays/confirmation.ts';
import type { Confirmation } from '../../../../src/controllers/mesh-tailnet/relays/confirmation.ts';
import type {
  RelayReport,
  RelayResponse,
} from '../../../../src/controllers/mesh-tailnet/relays/relay-status.ts';

const [CURRENT, OLD] = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'];
const PORTS = new Map([
  ['100.64.0.1:53', 20_001],
  ['100.64.0.2:53', 20_002],
]);

const aResponse: fc.Arbitrary<RelayResponse> = fc.oneof(
  fc.constant({ error: 'connect ECONNREFUSED' }),
  fc.constant({ version: OLD, failed: new Map() }),
  fc
    .subarray([20_001, 20_002, 1024])
    .map(ports => ({ version: CURRENT, failed: new Map(ports.map(port => [port, 'EADDRINUSE'] as const)) })),
);

/** What relays respond, and how much later than before. */
type Read = { readonly reports: readonly RelayReport[]; readonly afterMs: number };

/** Up to three relays. */
const aRead: fc.Arbitrary<Read> = fc.record({
  reports: fc.dictionary(fc.constantFrom('0', '1', '2'), aResponse).map((responses): readonly RelayReport[] =>
    Object.entries(responses).map(([uid, response]) => ({
      pod: { uid, name: `meshd-example-${uid}`, address: `10.0.0.${uid}` },
      response,
    })),
  ),
  afterMs: fc.constantFrom(200, 1000, 9000, 10_000),
});

/** What is known after each of several reads. */
function confirmations(
  reads: readonly Read[],
): readonly { before: Confirmation; after: Confirmation; read: Read }[] {
  let known = UNCONFIRMED;
  let now = 0;
  return reads.map(read => {
    now += read.afterMs;
    const before = known;
    known = confirm(before, {
      tailnet: 'example',
      ports: PORTS,
      version: CURRENT,
      reports: read.reports,
      now,
    });
    return { before, after: known, read };
  });
}

function isCurrent({ response }: RelayReport): boolean {
  return 'version' in response && response.version === CURRENT;
}

function listens({ response }: RelayReport, port: number): boolean {
  return 'version' in response && response.version === CURRENT && !response.failed.has(port);
}

function checkAll(check: (step: ReturnType<typeof confirmations>[number]) => void): void {
  fc.assert(fc.property(fc.array(aRead, { maxLength: 8 }), reads => confirmations(reads).forEach(check)));
}

describe('what is known of the ports of relays', () => {
  it('is that a port is confirmed, or failed, or waits for what is named, or may be confirmed soon', () => {
    checkAll(({ after: { confirmed, failed, pending, isWaiting } }) => {
      for (const [target, port] of PORTS) {
        const states = [confirmed.get(target) === port, failed.has(target), pending.has(target)];
        expect(states.filter(Boolean).length).toBe(isWaiting && !confirmed.has(target) ? 0 : 1);
      }
    });
  });

  it('is confirmed for the first time only where a relay listens, and no other is expected to soon', () => {
    checkAll(({ before, after, read }) => {
      for (const [target, port] of after.confirmed) {
        if (before.confirmed.has(target)) continue;
        expect(after.isWaiting).toBe(false);
        expect(read.reports.some(report => listens(report, port))).toBe(true);
      }
    });
  });

  it('stays confirmed unless all relays that have the targets failed to listen', () => {
    checkAll(({ before, after, read }) => {
      for (const [target, port] of before.confirmed) {
        if (after.confirmed.has(target)) continue;
        const current = read.reports.filter(isCurrent);
        expect(current.length).toBeGreaterThan(0);
        expect(current.some(report => listens(report, port))).toBe(false);
      }
    });
  });

  it('has a problem for each relay that is late or has failed ports, and relays are read again', () => {
    checkAll(({ after, read }) => {
      const pods = new Set(read.reports.map(({ pod }) => pod.uid));
      for (const [uid, { pod }] of after.problems) expect([pods.has(uid), pod.uid]).toEqual([true, uid]);
      const isFine = read.reports.every(report => listens(report, 20_001) && listens(report, 20_002));
      expect(after.problems.size === 0 && !after.isWaiting).toBe(isFine);
      expect(after.nextMs === undefined).toBe(isFine);
    });
  });

  it('waits for a relay for 10 s at most, whatever it responds', () => {
    const late = fc.array(
      fc.oneof(fc.constant({ error: 'x' }), fc.constant({ version: OLD, failed: new Map() })),
      {
        minLength: 1,
        maxLength: 20,
      },
    );
    fc.assert(
      fc.property(late, responses => {
        const reads = responses.map(response => ({
          reports: [{ pod: { uid: '0', name: 'meshd-example-0', address: '10.0.0.7' }, response }],
          afterMs: 1000,
        }));
        const waiting = confirmations(reads).filter(({ after }) => after.isWaiting);
        expect(waiting.length).toBe(Math.min(10, responses.length));
      }),
    );
  });

  it('fits into a status, however long names and errors are', () => {
    const name = 'meshd-'.padEnd(63, 'x');
    const pods = ['0', '1', '2'].map(uid => ({ uid, name, address: '10.0.0.7' }));
    const texts = [
      pods.map(pod => ({ pod, response: { error: 'x'.repeat(5000) } })),
      pods.map(pod => ({ pod, response: { version: CURRENT, failed: new Map([[20_001, 'E'.repeat(32)]]) } })),
      [],
    ].flatMap(reports => {
      const { after } = confirmations([1, 20_000].map(afterMs => ({ reports, afterMs }))).at(-1) ?? {};
      return [...(after?.failed.values() ?? []), ...(after?.pending.values() ?? [])].map(formatProblem);
    });
    expect(texts.length).toBe(5);
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(256);
  });
});
