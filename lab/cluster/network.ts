/**
 * The network of a cluster. A pair of interfaces connects it with this machine; there are no other routes.
 *
 *     this machine              the cluster's own network
 *     mesh-gw 10.213.254.1 ---- eth0 10.213.254.2   API server, kubelet
 *     tailnet, remote nodes     mesh0 10.213.0.1    bridge of the pods, DNS
 *                               10.213.0.10 ...     pods
 *                               10.213.128.0/17     Services
 */
export const NETWORK = {
  /** This machine's address for pods. */
  outerInterface: 'mesh-gw',
  outer: '10.213.254.1',
  /** The address of the node. */
  inner: '10.213.254.2',
  bridge: 'mesh0',
  bridgeAddress: '10.213.0.1',
  pods: '10.213.0.0/24',
  firstPod: '10.213.0.10',
  services: '10.213.128.0/17',
  /** The Service `kubernetes`: the first address of the Services. */
  apiService: '10.213.128.1',
  dns: '10.213.0.1',
  domain: 'cluster.local',
} as const;

/** The name of the one node. */
export const NODE_NAME = 'mesh-node';

/** The address of the API server, for this machine and for the cluster. */
export const API_SERVER = `https://${NETWORK.inner}:6443`;
