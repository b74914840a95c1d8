import { describe, expect, it } from 'vitest';
import type { MeshdState } from '../../../src/controllers/mesh-tailnet/pool/meshd-state.ts';
import { typescript } from '../../support/lab/command-line.ts';
import { outputInOwnNetwork } from '../../support/lab/traffic/own-network.ts';

type Found = {
  readonly meshd: MeshdState;
  readonly front: {
    readonly http: string;
    readonly ofName: number;
    readonly onEachAddress: readonly number[];
    readonly undeclared: readonly number[];
    readonly outside: readonly number[];
  };
  readonly udp: readonly string[];
  readonly inbound: readonly string[];
  readonly forwards: boolean;
  readonly service: unknown;
  readonly killed: readonly string[] | undefined;
};

describe('a mesh pod', () => {
  it.concurrent.each([
    ['IPv6 only', ['fd00:5::7']],
    ['IPv4 first, and IPv6', ['10.90.0.7', 'fd00:5::7']],
    ['IPv6 first, and IPv4', ['fd00:5::7', '10.90.0.7']],
  ])(
    'carries CONNECT toward declared devices alone, and datagrams, answers no device, and refuses connections without tailscaled, where it has %s',
    async (_, podIPs) => {
      const program = typescript('test/support/lab/mesh-pod-program.ts', ...podIPs);
      const found = JSON.parse(await outputInOwnNetwork(program)) as Found;
      expect(found.meshd).toEqual({ hasRelay: true, problems: 0 });
      expect(found.front).toEqual({
        http: expect.stringContaining('"backend":"web-1"') as string,
        ofName: 200,
        onEachAddress: podIPs.map(() => 200),
        undeclared: [403, 403],
        outside: [502, 502, 502, ...podIPs.map(() => 502)],
      });
      expect(found.udp).toEqual(podIPs.map(podIP => `to ${podIP}`));
      expect([found.inbound, found.forwards]).toEqual([[], true]);
      const served = {
        unhealthy: [],
        healthy: ['svc:web'],
        answer: expect.stringContaining('to a service') as string,
        ending: [],
        isServing: true,
      };
      expect(found.service).toEqual(podIPs.length > 1 ? served : undefined);
      expect(found.killed).toEqual(podIPs.length > 1 ? undefined : ['accepted', 'ECONNREFUSED']);
    },
  );
});
