import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { formatTrust } from '../../../../src/api/trust.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { caCertificates } from '../../../../src/controllers/mesh-endpoints/inputs/ca-certificates.ts';
import { endpoint } from '../../../support/objects.ts';
import { createMemory } from '../../../support/store/memory.ts';
import { derivedFrom } from '../../../support/store/traffic.ts';
import { resourceOf } from '../../../support/store/resources.ts';
import { CERTIFICATE } from '../../../support/traffic/certificates.ts';
import { configMapObject, endpointsObject } from '../../../support/traffic/objects.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function withCaRef(tls: object = { caRef: { name: 'ca' } }): Kinds['MeshEndpoints'] {
  const object = resourceOf(endpointsObject('web', [endpoint({ port: 443, protocol: 'HTTPS', tls })]));
  if (object.kind !== 'MeshEndpoints') throw new Error('not a MeshEndpoints');
  return object;
}

const published = configMapObject(
  'mesh-system/mesh-trust',
  formatTrust(new Map([['default/ca/ca.crt', { is: 'found', pem: CERTIFICATE }]])),
);

async function sceneOf(...objects: readonly object[]) {
  const clock = new VirtualClock();
  const memory = createMemory(trafficIndexes, objects);
  await memory.start();
  const derived = derivedFrom(memory.read, { trustNamespace: 'mesh-system' });
  const reads = derived.tracking.readsOf({ affected: () => undefined });
  const traffic = derived.traffic.resources(reads.open());
  const source = caCertificates({ read: memory.read, clock });
  const aborted = new AbortController();
  const inputsOf = async (object = withCaRef()) =>
    (await source.read(object, { traffic, run: aborted })).get('web');
  return { clock, memory, inputsOf, aborted };
}

describe('the certificates of an endpoint', () => {
  it('are those of its caRef', async () => {
    const { inputsOf } = await sceneOf(published);
    expect(await inputsOf()).toEqual({ ca: CERTIFICATE });
    expect(await inputsOf(withCaRef({ caRef: { name: 'ca' }, insecureSkipVerify: true }))).toBeUndefined();
  });

  it('are those that are published, while there is no room for newer ones', async () => {
    const ca = { is: 'found', pem: CERTIFICATE, isOutdated: true } as const;
    const data = formatTrust(new Map([['default/ca/ca.crt', ca]]));
    const { inputsOf } = await sceneOf(configMapObject('mesh-system/mesh-trust', data));
    expect(await inputsOf()).toEqual({
      ca: CERTIFICATE,
      outdated: {
        text: 'tls.caRef: its ConfigMap has newer certificates, for which the share of this namespace of 900 KB has no room',
        fix: 'use fewer certificates, or equal ones',
      },
    });
  });

  it('are waited for while the operator has not read their ConfigMap', async () => {
    const { memory, inputsOf } = await sceneOf();
    const inputs = inputsOf();
    await memory.author.put(published);
    expect(await inputs).toEqual({ ca: CERTIFICATE });
  });

  it('are a problem if the operator does not read their ConfigMap in time', async () => {
    const { clock, inputsOf } = await sceneOf();
    const inputs = inputsOf();
    await clock.advance(2000);
    expect((await inputs)?.problem?.text).toContain(
      'tls.caRef cannot be used: the operator has not read ConfigMap',
    );
  });

  it('are waited for by two objects of a namespace at once, so that others are reconciled meanwhile', async () => {
    const { memory, inputsOf } = await sceneOf();
    const waiting = [inputsOf(), inputsOf()];
    expect((await inputsOf())?.problem).toBeDefined();
    await memory.author.put(published);
    expect(await Promise.all(waiting)).toEqual([{ ca: CERTIFICATE }, { ca: CERTIFICATE }]);
  });

  it('are not waited for after an abort', async () => {
    const { inputsOf, aborted } = await sceneOf();
    const inputs = inputsOf();
    aborted.abort();
    expect((await inputs)?.problem).toBeDefined();
  });
});
