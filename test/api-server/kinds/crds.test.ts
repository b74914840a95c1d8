import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { waitUntilServed } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { conditionsOf } from '../../../lab/kube/state.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';

const FOLDER = 'dist/crds';

type Spec = {
  readonly group: string;
  readonly names: { readonly plural: string };
  readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: object } }[];
};

const definitions = readdirSync(FOLDER).flatMap(file =>
  readManifests(`${FOLDER}/${file}`).map(written => ({ file: `${FOLDER}/${file}`, written })),
);

const client = kubeClient(sharedApiServer().access);

const specOf = (object: KubeObject) => object['spec'] as Spec;

/** The server adds one field: CRDs with a single version need no conversion. */
const asStored = (written: KubeObject) => ({ ...specOf(written), conversion: { strategy: 'None' } });

/**
 * The same CRD in another group. Other tests use the real one, so it cannot be deleted; and the server compiles only
 * new rules.
 */
function elsewhere(definition: KubeObject): KubeObject {
  const spec = { ...specOf(definition), group: `g${randomBytes(4).toString('hex')}.example.com` };
  return { ...definition, metadata: { name: `${spec.names.plural}.${spec.group}` }, spec };
}

describe.each(definitions)('$file', ({ file, written }) => {
  it('is accepted by a new server, which compiles all its rules', async () => {
    const definition = elsewhere(written);
    const created = await client.create(definition, { fieldValidation: 'Strict' });
    try {
      expect(created['spec']).toEqual(asStored(definition));
      await waitUntilServed(client, definition);
    } finally {
      await client.remove(refOf(definition));
    }
  });

  it('is established, and its schema is structural', async () => {
    const conditions = conditionsOf(await client.get(refOf(written)));
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'NamesAccepted', status: 'True' }));
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Established', status: 'True' }));
    expect(conditions.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([]);
  });

  it('is stored as it is written', async () => {
    const stored = await client.get(refOf(written));
    expect(stored['spec']).toEqual(asStored(written));
    expect(stored).toMatchObject({ metadata: written.metadata, status: { storedVersions: ['v1alpha1'] } });
  });

  it('changes nothing when it is applied again', async () => {
    const before = await client.get(refOf(written));
    expect(await client.apply(written, { fieldManager: 'kubectl' })).toEqual(before);
    expect(await client.get(refOf(written))).toEqual(before);
  });

  it('is read by the server, by kubectl and by us as the same', async () => {
    const text = readFileSync(file, 'utf8');
    const path = `${await client.pathOf(refOf(written))}?fieldManager=kubectl&force=true&dryRun=All`;
    const contentType = 'application/apply-patch+yaml';
    const { status, body } = await client.request('PATCH', path, text, { contentType });
    expect({ status, spec: (body as KubeObject)['spec'] }).toEqual({ status: 200, spec: asStored(written) });
    expect(parse(text)).toEqual(written);
  });

  it('would be refused if one of its rules were too expensive', async () => {
    const definition = withRule(elsewhere(written), EXPENSIVE);
    const created = client.create(definition, { dryRun: 'All' });
    await expect(created).rejects.toMatchObject({
      reason: 'Invalid',
      message: expect.stringMatching(/estimated rule cost exceeds budget/) as unknown,
    });
  });

  it('would be refused if one of its rules named an unknown field', async () => {
    const definition = withRule(elsewhere(written), 'self.spec.noSuchField');
    const created = client.create(definition, { dryRun: 'All' });
    await expect(created).rejects.toMatchObject({
      reason: 'Invalid',
      message: expect.stringContaining("undefined field 'noSuchField'") as unknown,
    });
  });
});

/** The cost estimate of a comparison of unbounded lists: the name of an object has no limit in its schema. */
const EXPENSIVE =
  "self.metadata.name.split('').all(a, self.metadata.name.split('').all(b, a.matches('x*y*z*') || b != a))";

function withRule(definition: KubeObject, rule: string): KubeObject {
  const spec = specOf(definition);
  const versions = spec.versions.map(version => {
    const schema = { ...version.schema.openAPIV3Schema, 'x-kubernetes-validations': [{ rule }] };
    return { ...version, schema: { openAPIV3Schema: schema } };
  });
  return { ...definition, spec: { ...spec, versions } };
}
