import type { VipService } from '../../../../src/control/control.ts';
import type { Claim, Context } from '../../../../src/controllers/vip-services/decision.ts';
import { OWNERS, withOwners } from '../../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../../src/controllers/vip-services/owners.ts';

const NOW = new Date('2026-01-15T12:00:00Z');
export const ago = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);
export const OURS = '0a1b2c3d';

export const CLAIM: Claim = {
  ...{ name: 'svc:web', object: 'default/web', port: 443, tags: ['tag:mesh'], strategy: 'shared' },
  ...{ notAdoptable: undefined, shareWith: [] },
  ...{ mayCreate: true, kept: undefined, cluster: 'here', heartbeatMs: 300_000, staleMs: 1_800_000 },
};

export const CONTEXT: Context = {
  ...{ installation: OURS, now: NOW, isOnline: () => false, leavingForMs: 0, seen: [] },
};

export const owner = (fields: Partial<Owner> = {}): Owner => ({
  ...{ installation: OURS, cluster: 'here', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], shareWith: [], heartbeat: ago(1) },
  ...fields,
});
/** As an earlier version writes it. */
export const beforeSharing = (installation: string): Owner => {
  const { shareWith: _none, ...rest } = owner({ installation });
  return rest;
};
/** It shares its services with ours. */
export const other = (fields: Partial<Owner> = {}) =>
  owner({ installation: 'ffffffff', cluster: 'there', shareWith: [OURS], ...fields });
export const third = (fields: Partial<Owner> = {}) =>
  owner({ installation: 'eeeeeeee', cluster: 'elsewhere', ...fields });

export function service(
  owners: readonly Owner[] | string,
  ports = ['tcp:443'],
  isAdopted = false,
): VipService {
  const annotations = typeof owners === 'string' ? { [OWNERS]: owners } : withOwners({}, owners, isAdopted);
  const addrs = ['100.96.0.1', 'fd7a:115c:a1e0:ff::1'];
  const fields = { name: 'svc:web', addrs, ports, tags: ['tag:mesh'], annotations, comment: 'kept' };
  return { ...fields, fields };
}

/** What a list had a moment ago. */
export const seenOnce = (...owners: readonly Owner[]): Context['seen'] =>
  owners.map((each, index) => ({ owner: each, isFirst: index === 0, at: NOW.getTime() }));
