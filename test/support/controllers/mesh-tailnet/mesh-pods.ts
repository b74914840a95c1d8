import type { ResourceOf } from '../../../../src/api/objects/resource.ts';
import type { Device } from '../../../../src/control/control.ts';

type Pod = ResourceOf<'Pod'>;

type PodState = {
  readonly isReady?: boolean;
  /** Of its template. */
  readonly revision?: string;
  readonly unschedulable?: string;
  readonly waiting?: { readonly reason: string; readonly message: string };
  /** The message with which its container ended. */
  readonly terminated?: string;
  /** Its container relay, beside a container meshd that is ready. */
  readonly relay?: Pick<PodState, 'isReady' | 'waiting' | 'terminated'>;
};

/** A mesh pod of the MeshTailnet `example`, as it is read. */
export function podOf(name: string, { isReady = false, revision = 'r1', ...state }: PodState): Pod {
  const { unschedulable, relay } = state;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'mesh-system',
      uid: `uid-${name}`,
      labels: { 'mesh-gateway.dev/tailnet': 'example', 'controller-revision-hash': revision },
    },
    status: {
      isReady,
      addresses: [],
      unschedulable,
      container: containerOf({ ...state, isReady: isReady || relay !== undefined }),
      relay: relay && containerOf(relay),
    },
  };
}

function containerOf({ isReady = false, waiting, terminated }: PodState) {
  const lastTerminated =
    terminated === undefined ? undefined : { reason: 'Error', message: terminated, exitCode: 1 };
  return { isReady, waiting, lastTerminated, restarts: 0 };
}

/** A device of a tailnet. */
export function deviceWith(fields: Partial<Device>): Device {
  return {
    id: 'n1',
    name: 'meshd-example-0-abcd1234.example.ts.net',
    hostname: 'meshd-example-0-abcd1234',
    addresses: ['100.64.0.1'],
    tags: ['tag:mesh'],
    isAuthorized: true,
    isOnline: true,
    isExternal: false,
    expires: undefined,
    isExpired: false,
    blocksIncoming: false,
    ...fields,
  };
}
