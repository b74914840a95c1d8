import type { Fields } from '../json.ts';
import type { Header, Metadata } from './gateway-api.ts';
import { familyOf } from '../ip.ts';
import { isRecord, recordOf } from '../json.ts';
import { MESH_POD, RELAY } from '../names.ts';
import { field, forms, optionalText, present } from './place.ts';
import type { FieldValue } from './place.ts';

/** A mesh pod, reduced to the fields that show its progress. */
export type Pod = {
  readonly kind: 'Pod';
  readonly apiVersion: string;
  readonly metadata: Metadata & { readonly creationTimestamp?: string };
  readonly status: {
    readonly isReady: boolean;
    /** Its IP addresses, the primary one first; none until its node has assigned them. */
    readonly addresses: readonly string[];
    /** Why no node can run it; undefined where it is scheduled, or has yet to be. */
    readonly unschedulable: string | undefined;
    /** The container meshd; undefined until it exists. */
    readonly container: ContainerStatus | undefined;
    /** The container relay; undefined until it exists, and where the pod has none. */
    readonly relay: ContainerStatus | undefined;
  };
};

type ContainerStatus = {
  readonly isReady: boolean;
  readonly waiting: { readonly reason: string; readonly message: string } | undefined;
  readonly lastTerminated: Terminated | undefined;
  readonly restarts: number;
};

/** How the container ended, the last time that it did. */
type Terminated = { readonly reason: string; readonly message: string; readonly exitCode: number };

/** A Pod. Fields of its status that have other types than those of Kubernetes count as missing. */
export function decodePod(header: Header<'Pod'>, object: FieldValue): Pod {
  const { annotations: _annotations, ...metadata } = header.metadata;
  const created = optionalText(field(field(object, 'metadata'), 'creationTimestamp'), forms.any);
  const status = recordOf(field(object, 'status').value);
  const conditionOf = (type: string) => named(status['conditions'], 'type', type);
  const scheduled = conditionOf('PodScheduled');
  const isUnschedulable = scheduled['status'] === 'False' && scheduled['reason'] === 'Unschedulable';
  return {
    ...header,
    metadata: { ...metadata, ...present({ creationTimestamp: created }) },
    status: {
      isReady: conditionOf('Ready')['status'] === 'True',
      addresses: addressesIn(status['podIPs']),
      unschedulable: isUnschedulable ? textIn(scheduled, 'message') : undefined,
      container: containerIn(named(status['containerStatuses'], 'name', MESH_POD.container)),
      relay: containerIn(named(status['containerStatuses'], 'name', RELAY.container)),
    },
  };
}

function addressesIn(podIPs: unknown): readonly string[] {
  if (!Array.isArray(podIPs)) return [];
  return podIPs.map(podIP => textIn(recordOf(podIP), 'ip')).filter(ip => familyOf(ip) !== undefined);
}

function containerIn(status: Fields): ContainerStatus | undefined {
  if (status['name'] === undefined) return undefined;
  const [state, lastState] = [recordOf(status['state']), recordOf(status['lastState'])];
  const waiting = state['waiting'];
  const terminated = [state, lastState].map(each => each['terminated']).find(isRecord);
  return {
    isReady: status['ready'] === true,
    waiting: isRecord(waiting) ? reasonIn(waiting) : undefined,
    lastTerminated: terminated && { ...reasonIn(terminated), exitCode: integerIn(terminated, 'exitCode') },
    restarts: integerIn(status, 'restartCount'),
  };
}

/** The item of a list whose field has a value; without fields where there is none. */
function named(list: unknown, name: string, value: string): Fields {
  const found: unknown = Array.isArray(list) ? list.find(item => recordOf(item)[name] === value) : undefined;
  return recordOf(found);
}

function reasonIn(fields: Fields) {
  return { reason: textIn(fields, 'reason'), message: textIn(fields, 'message') };
}

function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === 'string' ? value : '';
}

function integerIn(fields: Fields, name: string): number {
  const value = fields[name];
  return Number.isSafeInteger(value) ? (value as number) : 0;
}
