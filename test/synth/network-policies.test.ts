import { describe, expect, it } from 'vitest';
import { MESH_POD, RELAY } from '../../src/api/names.ts';
import { podLabels, workloads } from '../support/synth/parts.ts';
import { isAllowed } from '../support/synth/reach.ts';
import type { Place, Port } from '../support/synth/reach.ts';
import { objectsIn, synthesized } from '../support/synth/synthesized.ts';

const objects = objectsIn(synthesized({}));

const OWN = 'mesh-system';
const ENVOYS = 'envoy-gateway-system';
const envoyLabels = {
  'app.kubernetes.io/managed-by': 'envoy-gateway',
  'app.kubernetes.io/component': 'proxy',
};
const meshPodLabels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: 'home', [RELAY.label]: 'true' };

function labelsOf(name: string) {
  const found = workloads(objects).find(({ metadata }) => metadata.name === name);
  if (!found) throw new Error(`there is no ${name}`);
  return podLabels(found);
}

const PEERS: Readonly<Record<string, Place>> = {
  'an Envoy': { namespace: ENVOYS, labels: envoyLabels },
  'Envoy Gateway': { namespace: ENVOYS, labels: { 'control-plane': 'envoy-gateway' } },
  'another pod beside the Envoys': { namespace: ENVOYS, labels: {} },
  'a pod elsewhere with the labels of an Envoy': { namespace: 'shop', labels: envoyLabels },
  'the operator': { namespace: OWN, labels: labelsOf('mesh-operator') },
  'a pod elsewhere with the labels of the operator': { namespace: 'shop', labels: labelsOf('mesh-operator') },
  'the extension server': { namespace: OWN, labels: labelsOf('mesh-extension-server') },
  'a mesh pod': { namespace: OWN, labels: meshPodLabels },
  Prometheus: { namespace: 'monitoring', labels: {} },
  'any other pod': { namespace: 'shop', labels: { app: 'shop' } },
};

const PORTS: readonly Port[] = [
  ...(['TCP 1055', 'UDP 1055', 'TCP 9002', 'TCP 9003', 'UDP 9003', 'TCP 5005', 'TCP 8080'] as const),
  ...(['TCP 8081', 'UDP 19999', 'UDP 20000', 'TCP 20000', 'UDP 25000', 'UDP 29999', 'UDP 30000'] as const),
];

const DATAGRAMS: readonly Port[] = ['UDP 20000', 'UDP 25000', 'UDP 29999'];

/** All that is allowed, by what receives it and what sends it. */
const ALLOWED: Readonly<Record<string, Readonly<Record<string, readonly Port[]>>>> = {
  'a mesh pod': {
    'an Envoy': ['TCP 1055', ...DATAGRAMS],
    'the operator': ['TCP 1055', 'TCP 9002', 'TCP 9003', ...DATAGRAMS],
    Prometheus: ['TCP 9002', 'TCP 9003'],
  },
  'the extension server': {
    'an Envoy': ['TCP 5005'],
    'Envoy Gateway': ['TCP 5005'],
    Prometheus: ['TCP 8080'],
  },
  'the operator': { Prometheus: ['TCP 8080'] },
};

const cases = Object.keys(ALLOWED).flatMap(to => Object.keys(PEERS).map(from => ({ from, to })));

describe('the network policies', () => {
  it.each(cases)('allow $from to reach exactly its ports of $to', ({ from, to }) => {
    const [sender, receiver] = [PEERS[from], PEERS[to]];
    if (!sender || !receiver) throw new Error('unknown pod');
    const allowed = PORTS.filter(port => isAllowed(objects, sender, receiver, port));
    expect(allowed.toSorted()).toEqual([...(ALLOWED[to]?.[from] ?? [])].sort());
  });

  it('open the ports that are configured, and no others', () => {
    const written = { meshPods: { relayPorts: { first: 4000, last: 4001 } } };
    const [envoy, operator, meshPod] = [PEERS['an Envoy'], PEERS['the operator'], PEERS['a mesh pod']];
    if (!envoy || !operator || !meshPod) throw new Error('unknown pod');
    const others = objectsIn(synthesized(written));
    const ports: readonly Port[] = ['UDP 3999', 'UDP 4000', 'UDP 4001', 'UDP 4002', 'UDP 20000'];
    for (const from of [envoy, operator])
      expect(ports.filter(port => isAllowed(others, from, meshPod, port))).toEqual(['UDP 4000', 'UDP 4001']);
  });
});
