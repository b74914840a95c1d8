import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { retryWhileBusy } from '../../../lab/kube/transport.ts';
import { waitForAbsence, waitForCondition, waitForObject } from '../../../lab/kube/wait.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { meshEndpoints } from '../../support/objects.ts';

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

/** An existing MeshEndpoints of this test. */
async function createEndpoints(): Promise<KubeObject> {
  return await client.create({
    ...meshEndpoints(),
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { namespace, generateName: 'test-' },
  });
}

function condition(type: string, status: string, reason: string, message: string, observedGeneration = 1) {
  const lastTransitionTime = '2026-01-31T12:00:00Z';
  return { type, status, reason, message, observedGeneration, lastTransitionTime };
}

describe('a wait that times out', () => {
  it('reports the last conditions, those that are not True first', async () => {
    const ref = refOf(await createEndpoints());
    const found = condition('TailnetFound', 'True', 'Found', 'found');
    const ready = condition('Ready', 'False', 'NoTailnet', 'no MeshTailnet\n has this domain');
    await client.patchStatus(ref, { conditions: [found, ready] });
    await expect(waitForCondition(client, ref, 'Ready', 'True', 1)).rejects.toThrow(
      `for MeshEndpoints ${namespace}/${ref.name} to have Ready=True; last seen: ` +
        'Ready=False (NoTailnet: no MeshTailnet has this domain), TailnetFound=True (Found)',
    );
  });

  it('reports that there is no status', async () => {
    const ref = refOf(await createEndpoints());
    const waiting = waitForObject(client, ref, 'to be seen', ({ status }) => status !== undefined, 1);
    await expect(waiting).rejects.toThrow(/ to be seen; last seen: it has no status$/);
  });

  it('reports that the object does not exist', async () => {
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'nowhere' };
    const waiting = waitForCondition(client, ref, 'Ready', 'True', 1);
    await expect(waiting).rejects.toThrow(/last seen: GET .*: 404 NotFound: configmaps "nowhere" not found/);
  });

  it('reports that an object is being deleted, with its conditions', async () => {
    const object = await createEndpoints();
    const ref = refOf(object);
    await client.apply(withFinalizers(object, ['example.com/stays']));
    await client.remove(ref);
    await expect(waitForAbsence(client, ref, 1)).rejects.toThrow(
      /to be deleted; last seen: is being deleted/,
    );
    await client.apply(withFinalizers(object, []));
    await waitForAbsence(client, ref);
  });
});

function withFinalizers({ metadata: { name = '' }, ...object }: KubeObject, finalizers: readonly string[]) {
  const { spec, apiVersion, kind } = object as KubeObject;
  return { apiVersion, kind, spec, metadata: { name, namespace, finalizers } };
}

describe('waiting for a condition', () => {
  it('ends when a controller sets it', async () => {
    const ref = refOf(await createEndpoints());
    const waiting = waitForCondition(client, ref, 'Ready');
    await client.patchStatus(ref, { conditions: [condition('Ready', 'True', 'Ready', '')] });
    expect(await waiting).toMatchObject({ status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  });

  it('ignores one for an older generation', async () => {
    const object = await createEndpoints();
    const ref = refOf(object);
    await client.patchStatus(ref, { conditions: [condition('Ready', 'True', 'Ready', '', 1)] });
    await client.apply({ ...withFinalizers(object, []), spec: { tailnet: 'other.ts.net', endpoints: [] } });
    await expect(waitForCondition(client, ref, 'Ready', 'True', 1)).rejects.toThrow(/Ready=True \(Ready/);
  });
});

describe('the client', () => {
  it('fails with the causes of the server', async () => {
    const object = { ...meshEndpoints({ tailnet: 7 }), metadata: { namespace, name: 'wrong' } };
    await expect(client.create(object as unknown as KubeObject)).rejects.toMatchObject({
      name: 'KubeError',
      status: 422,
      reason: 'Invalid',
      message: expect.stringMatching(/^POST .*\/meshendpoints: 422 Invalid: .*spec.tailnet/) as unknown,
      causes: expect.arrayContaining([
        expect.objectContaining({ reason: 'FieldValueTypeInvalid', field: 'spec.tailnet' }),
      ]) as unknown,
    });
  });

  it('replaces a status, and nothing else', async () => {
    const object = await createEndpoints();
    const changed = { ...object, spec: { tailnet: 'other.ts.net' }, status: { observedGeneration: 1 } };
    await client.replaceStatus(changed);
    const stored = await client.get(refOf(object));
    expect(stored).toMatchObject({ spec: object['spec'], status: { observedGeneration: 1 } });
  });

  it('lists a namespace, each item with apiVersion and kind', async () => {
    const object = await createEndpoints();
    const listed = await client.list({ apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace });
    expect(listed).toContainEqual(object);
  });

  it('ignores NotFound when deleting', async () => {
    const ref = refOf(await createEndpoints());
    await client.remove(ref);
    await waitForAbsence(client, ref);
    await expect(client.remove(ref)).resolves.toBeUndefined();
  });

  it('discovers a new kind, and applies objects of it at once', async () => {
    const group = `g${randomBytes(4).toString('hex')}.example.com`;
    const definition = definitionOf(group);
    const object = { apiVersion: `${group}/v1`, kind: 'Note', metadata: { namespace, name: 'first' } };
    await expect(client.get(refOf(object))).rejects.toMatchObject({ status: 404, reason: 'UnknownKind' });
    try {
      await applyAll(client, [object, definition]);
      expect(await client.get(refOf(object))).toMatchObject(object);
    } finally {
      await client.remove(refOf(definition));
    }
  });
});

function definitionOf(group: string): KubeObject {
  const schema = { openAPIV3Schema: { type: 'object' } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `notes.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'notes', kind: 'Note' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}

describe('a server that is busy', () => {
  const answers = (retryAfter: string | undefined, times: number) => {
    let left = times;
    return () => {
      left -= 1;
      const busy = { status: 429, body: left, ...(retryAfter === undefined ? {} : { retryAfter }) };
      return Promise.resolve(left < 0 ? { status: 200, body: 'done' } : busy);
    };
  };

  it('is retried after Retry-After', async () => {
    expect(await retryWhileBusy(answers('0', 3))).toEqual({ status: 200, body: 'done' });
  });

  it('is not retried forever', async () => {
    expect(await retryWhileBusy(answers('0', 50))).toEqual({ status: 429, body: 45 });
  });

  it('is not retried without Retry-After', async () => {
    expect(await retryWhileBusy(answers(undefined, 1))).toEqual({ status: 429, body: 0 });
  });
});
