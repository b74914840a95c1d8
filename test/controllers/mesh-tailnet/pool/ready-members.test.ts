import { describe, expect, it } from 'vitest';
import { MESH_POD } from '../../../../src/api/names.ts';
import { tailnetIndexes } from '../../../../src/controllers/mesh-tailnet/controller.ts';
import { readyMembers } from '../../../../src/controllers/mesh-tailnet/pool/ready-members.ts';
import { admit } from '../../../../src/store/lifecycle.ts';
import { ResourceStore } from '../../../../src/store/store.ts';
import { named } from '../../../support/declared.ts';
import { meshTailnet } from '../../../support/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

function pod(name: string, ips: readonly string[], { status = 'True', ...metadata }: Fields = {}): object {
  const [tailnet = ''] = name.split('-');
  const labels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: tailnet };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'mesh-system', labels, ...metadata },
    status: { conditions: [{ type: 'Ready', status }], podIPs: ips.map(ip => ({ ip })) },
  };
}

/** The members of the pool of a MeshTailnet. */
function membersOf(name: string, objects: readonly object[], withoutDevice: readonly string[] = []) {
  const store = new ResourceStore(tailnetIndexes, failure => {
    throw failure;
  });
  for (const object of objects) store.put(admit(object));
  return readyMembers(store, { of: () => withoutDevice })(name);
}

const deleted = { deletionTimestamp: '2026-11-23T08:00:00Z', finalizers: ['example.org/test'] };

describe('the members of a pool that can carry checks', () => {
  it('are the ready mesh pods of its own tailnet, at their first address', () => {
    const objects = [
      named(meshTailnet({}), 'home'),
      pod('home-0', ['10.0.0.7', 'fd00::7']),
      pod('home-1', ['fd00::8']),
      pod('home-2', ['10.0.0.9'], { status: 'False' }),
      pod('home-3', []),
      pod('home-4', ['10.0.0.10'], deleted),
      pod('office-0', ['10.0.0.11']),
    ];
    expect(membersOf('home', objects)).toEqual([
      { name: 'home-0', proxy: { address: '10.0.0.7', port: 1055 }, pod: '10.0.0.7' },
      { name: 'home-1', proxy: { address: 'fd00::8', port: 1055 }, pod: 'fd00::8' },
    ]);
  });

  it('are not those whose device may no longer exist', () => {
    const objects = [
      named(meshTailnet({}), 'home'),
      pod('home-0', ['10.0.0.7']),
      pod('home-1', ['10.0.0.8']),
    ];
    const names = membersOf('home', objects, ['home-0']).map(({ name }) => name);
    expect(names).toEqual(['home-1']);
  });

  it('are the proxies of an External pool, without those that have a host name', () => {
    const addresses = ['192.0.2.1:1055', 'proxy.example.org:1055', '[2001:db8::1]:1056'];
    const external = named(meshTailnet({ pool: { mode: 'External', addresses } }), 'home');
    expect(membersOf('home', [external, pod('home-0', ['10.0.0.7'])])).toEqual([
      { name: '192.0.2.1:1055', proxy: { address: '192.0.2.1', port: 1055 }, pod: undefined },
      { name: '[2001:db8::1]:1056', proxy: { address: '2001:db8::1', port: 1056 }, pod: undefined },
    ]);
  });

  it('are none while the MeshTailnet is being deleted, and where it does not exist', () => {
    const tailnet = named(meshTailnet({}), 'home') as { readonly metadata: Fields };
    const deletedTailnet = { ...tailnet, metadata: { ...tailnet.metadata, ...deleted } };
    const pods = [pod('home-0', ['10.0.0.7'])];
    expect(membersOf('home', [deletedTailnet, ...pods])).toEqual([]);
    expect(membersOf('home', pods)).toEqual([]);
  });
});
