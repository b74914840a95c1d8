import { describe, expect, it } from 'vitest';
import type { VipService } from '../../../src/control/control.ts';
import { decide } from '../../../src/controllers/vip-services/decision.ts';
import type { Claim } from '../../../src/controllers/vip-services/decision.ts';
import { ownersOf, withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';

const NOW = new Date('2026-01-15T12:00:00Z');
const OURS = '0a1b2c3d';

const CLAIM: Claim = {
  ...{ name: 'svc:web', object: 'default/web', port: 443, tags: ['tag:mesh'], strategy: 'shared' },
  ...{ notAdoptable: undefined, shareWith: [] },
  ...{ mayCreate: true, kept: undefined, cluster: 'here', heartbeatMs: 300_000, staleMs: 1_800_000 },
};
const OWNER: Owner = {
  ...{ installation: OURS, cluster: 'here', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], shareWith: [], heartbeat: NOW },
};

/** What is decided about a service that the claim has, with some of its fields replaced by others. */
function decided(changed: Partial<VipService>, owner: Owner = OWNER) {
  const annotations = withOwners({}, [owner], false);
  const fields = { name: 'svc:web', ports: ['tcp:443'], tags: ['tag:mesh'], annotations };
  const service = { ...fields, addrs: ['100.96.0.1'], fields, ...changed };
  return decide(service, CLAIM, {
    installation: OURS,
    now: NOW,
    isOnline: () => false,
    leavingForMs: 0,
    seen: [],
  });
}

describe('a VIP service of this installation', () => {
  it.each([
    ['its port', { ports: ['tcp:80'] }],
    ['a tag', { tags: ['tag:mesh', 'tag:other'] }],
  ])('is not registered until it is written again where others have changed %s', (_, changed) => {
    expect(decided(changed)).toMatchObject({
      action: { do: 'put', result: 'updated', fields: { ports: ['tcp:443'], tags: ['tag:mesh'] } },
      state: { status: 'Pending', reason: 'Registering' },
    });
  });

  it('is kept by an owner that was removing it', () => {
    const { action } = decided({}, { ...OWNER, leaving: NOW });
    const { fields } = action.do === 'put' ? action : { fields: {} };
    expect(ownersOf(fields as VipService)).toEqual([OWNER]);
  });

  it.each([
    ['100.96.0.1', ['100.96.0.1', 'fd7a:115c:a1e0:ff::1']],
    [undefined, []],
    ['x'.repeat(45), ['x'.repeat(45)]],
    [undefined, ['x'.repeat(46)]],
  ])('has the address %s', (address, addrs) => {
    expect(decided({ addrs }).state?.vipAddress).toBe(address);
  });
});
