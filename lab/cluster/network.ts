/**
 * The network of a cluster. It is cut off from every other: a pair of interfaces joins it with this machine, and
 * nothing routes beyond.
 *
 *     this machine              the cluster's own network
 *     mesh-gw 10.213.254.1 ---- eth0 10.213.254.2   API server, kubelet
 *     tailnet, remote nodes     mesh0 10.213.0.1    bridge of the pods, DNS
 *                               10.213.0.10 ...     pods
 *                               10.213.128.0/17     Services
 */
export const NETWORK = {
  /** This machine's end, by which pods reach what runs here. */
  outerInterface: 'mesh-gw',
  outer: '10.213.254.1',
  /** The cluster's end: its node. */
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

/** Where the API server answers, for us and for everything in the cluster's network. */
export const API_SERVER = `https://${NETWORK.inner}:6443`;
