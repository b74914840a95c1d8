import { createHash } from 'node:crypto';
import type { Kinds } from '../../api/generated/types.ts';
import { API_VERSION } from '../../api/generated/kinds.ts';
import { MANAGED_BY } from '../../api/names.ts';
import type { OwnNamespace } from '../../store/own-namespace.ts';
import type { Log } from '../../telemetry/log.ts';
import { formatLedger, HOLDERS_KEY, parseLedger } from './ledger.ts';
import type { Ledger } from './ledger.ts';

type MeshTailnet = Kinds['MeshTailnet'];

export type LedgerStoreDeps = {
  readonly ownNamespace: Pick<OwnNamespace, 'apply' | 'configMap' | 'remove'>;
  readonly log: Pick<Log, 'warn'>;
};

/** The ledgers of tailnets, by their domains, which may pass from one MeshTailnet to another. Only the leader writes them. */
export interface LedgerStore {
  /** Undefined where there is none yet. */
  read(domain: string): Promise<Ledger | undefined>;
  /** Writes a ledger unless it is as it was; what follows from it may be done once it is stored. */
  write(tailnet: MeshTailnet, ledger: Ledger): Promise<void>;
  remove(domain: string): Promise<void>;
}

export function ledgerStore({ ownNamespace, log }: LedgerStoreDeps): LedgerStore {
  const known = new Map<string, Ledger | undefined>();
  const stored = new Map<
    string,
    { readonly ledger: Ledger; readonly owner: string; readonly text: string }
  >();
  return {
    read: async domain => {
      if (!known.has(domain)) {
        const configMap = await ownNamespace.configMap(ledgerName(domain));
        const text = configMap?.data[HOLDERS_KEY];
        const report = (line: number) =>
          log.warn('ignored a line of the holders of VIP services', { domain, line });
        known.set(domain, text === undefined ? undefined : parseLedger(text, report));
      }
      return known.get(domain);
    },
    write: async (tailnet, ledger) => {
      const { tailnet: domain } = tailnet.spec;
      const owner = tailnet.metadata.uid ?? tailnet.metadata.name;
      const before = stored.get(domain);
      if (before?.ledger === ledger && before.owner === owner) return;
      const object = objectOf(tailnet, ledger);
      const text = JSON.stringify(object);
      if (before?.text !== text) await ownNamespace.apply(object);
      stored.set(domain, { ledger, owner, text });
      known.set(domain, ledger);
    },
    remove: async domain => {
      await ownNamespace.remove('ConfigMap', ledgerName(domain));
      stored.delete(domain);
      known.set(domain, undefined);
    },
  };
}

/** The name of the ConfigMap with the ledger of a tailnet. */
function ledgerName(domain: string): string {
  return `vip-services-${createHash('sha256').update(domain).digest('hex').slice(0, 16)}`;
}

function objectOf({ metadata, spec }: MeshTailnet, ledger: Ledger) {
  const { name, uid = '' } = metadata;
  const owner = { apiVersion: API_VERSION, kind: 'MeshTailnet', name, uid, controller: true as const };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap' as const,
    metadata: { name: ledgerName(spec.tailnet), labels: MANAGED_BY, ownerReferences: [owner] },
    data: { tailnet: spec.tailnet, [HOLDERS_KEY]: formatLedger(ledger) },
  };
}
