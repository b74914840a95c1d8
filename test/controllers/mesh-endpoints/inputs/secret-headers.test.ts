import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { formatProblem } from '../../../../src/api/problem.ts';
import { SECRET_BYTES, SECRETS_OF_OBJECT } from '../../../../src/api/shares.ts';
import type { EndpointInputs } from '../../../../src/controllers/mesh-endpoints/inputs/inputs.ts';
import { secretHeaders } from '../../../../src/controllers/mesh-endpoints/inputs/secret-headers.ts';
import { ResourceError } from '../../../../src/store/resources.ts';
import { endpoint } from '../../../support/objects.ts';
import { resourceOf } from '../../../support/store/resources.ts';
import { endpointsObject } from '../../../support/traffic/objects.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const PERIOD_MS = 30_000;

const context = {
  run: new AbortController(),
  traffic: { trusted: () => expect.fail('no caRef is read') },
};

function checked(name: string, headersFrom: readonly object[], enabled = true): Kinds['MeshEndpoints'] {
  const object = resourceOf(endpointsObject(name, [endpoint({ healthCheck: { enabled, headersFrom } })]));
  if (object.kind !== 'MeshEndpoints') throw new Error('not a MeshEndpoints');
  return object;
}

const header = (name: string, secret: string, key = 'token') => ({
  name,
  secretKeyRef: { name: secret, key },
});

/** Secrets of namespace default, and what the API server answers instead. */
function sceneOf(secrets: Record<string, Readonly<Record<string, string>>>, podNamespace = 'mesh-system') {
  const clock = new VirtualClock();
  const scene = { failure: undefined as ResourceError | undefined, reads: 0, clock, secrets };
  const source = secretHeaders({
    referenced: {
      secret: (namespace, name) => {
        scene.reads++;
        if (scene.failure) return Promise.reject(scene.failure);
        const data = scene.secrets[`${namespace}/${name}`];
        return Promise.resolve(data && { version: undefined, data });
      },
    },
    podNamespace,
    clock,
    periodMs: PERIOD_MS,
  });
  const changed: string[] = [];
  source.subscribe?.(key => changed.push(key));
  /** What an object has once its Secrets have been read. */
  const inputsOf = async (object: Kinds['MeshEndpoints']) => {
    source.use?.(object);
    await clock.settle();
    return (await source.read(object, context)).get('web');
  };
  return { scene, source, inputsOf, changed };
}

const web = checked('web', [header('Authorization', 'auth')]);

const names = (count: number) => Array.from({ length: count }, (_, at) => `s${at}`);

/** Why an endpoint cannot be checked, as users read it. */
function problemIn(inputs: EndpointInputs | undefined): string {
  return inputs?.checkProblem ? formatProblem(inputs.checkProblem) : '';
}

/** An object with an endpoint for each Secret. */
function checkedBy(secrets: readonly string[], name = 'web'): Kinds['MeshEndpoints'] {
  const endpoints = secrets.map((secret, at) =>
    endpoint({ name: `e${at}`, healthCheck: { enabled: true, headersFrom: [header('A', secret)] } }),
  );
  return resourceOf(endpointsObject(name, endpoints)) as Kinds['MeshEndpoints'];
}

function inNamespace(namespace: string, object: Kinds['MeshEndpoints']): Kinds['MeshEndpoints'] {
  return { ...object, metadata: { ...object.metadata, namespace } };
}

describe('headers from Secrets', () => {
  it('have the values of their keys, in order, without surrounding white space', async () => {
    const { inputsOf } = sceneOf({ 'default/auth': { token: 'Bearer one\n' }, 'default/b': { id: 'two' } });
    const object = checked('web', [header('X-Id', 'b', 'id'), header('Authorization', 'auth')]);
    expect(await inputsOf(object)).toEqual({
      headers: [
        ['X-Id', 'two'],
        ['Authorization', 'Bearer one'],
      ],
    });
  });

  it('are not read for an endpoint that is not checked', async () => {
    const { scene, inputsOf } = sceneOf({});
    expect(await inputsOf(checked('web', [header('A', 'auth')], false))).toBeUndefined();
    expect(scene.reads).toBe(0);
  });

  it('are read once for all objects, and again after their age', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    await Promise.all([inputsOf(web), inputsOf(checked('api', [header('A', 'auth')]))]);
    expect(scene.reads).toBe(1);
    scene.secrets['default/auth'] = { token: 'two' };
    await scene.clock.advance(PERIOD_MS);
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'two']] });
  });

  it('keep their values while the API server does not respond', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    await inputsOf(web);
    scene.failure = new ResourceError('Unavailable', 'no response');
    await scene.clock.advance(PERIOD_MS);
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'one']] });
  });

  it('are forgotten with the last object that needs them', async () => {
    const { scene, source, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    await inputsOf(web);
    source.forget?.('MeshEndpoints/default/web');
    scene.failure = new ResourceError('Unavailable', 'no response');
    expect(problemIn(await inputsOf(web))).toBe(
      'healthCheck.headersFrom[0] cannot be used: Secret default/auth cannot be read: no response',
    );
  });

  it('need a right, and the problem has the RoleBinding that grants it', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    scene.failure = new ResourceError('Refused', 'forbidden');
    expect(problemIn(await inputsOf(web)))
      .toBe(`healthCheck.headersFrom[0] cannot be used: the operator may not read Secrets of namespace default: apply
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: mesh-secret-reader
  namespace: default
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: mesh-secret-reader.mesh-system
subjects:
  - kind: ServiceAccount
    name: mesh-operator
    namespace: mesh-system
`);
    scene.failure = undefined;
    await scene.clock.advance(1000);
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'one']] });
  });

  it('are read again with backoff while they are refused, and within the period once they are not', async () => {
    const { scene, inputsOf, changed } = sceneOf({ 'default/auth': { token: 'one' } });
    scene.failure = new ResourceError('Refused', 'forbidden');
    await inputsOf(web);
    await scene.clock.advance(60_000);
    // After 1, 2, 4, 8 and 16 s.
    expect(scene.reads).toBe(6);
    await scene.clock.advance(10 * PERIOD_MS);
    expect(scene.reads).toBe(16);
    scene.failure = undefined;
    changed.length = 0;
    await scene.clock.advance(PERIOD_MS);
    expect(changed).toEqual(['MeshEndpoints/default/web']);
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'one']] });
  });

  it('leave a check pending until they are read, and no reconcile waits for them', async () => {
    const { scene, source, changed } = sceneOf({
      'default/a': { token: 'one' },
      'default/b': { token: 'two' },
    });
    const object = checked('web', [header('A', 'a'), header('B', 'b')]);
    source.use?.(object);
    expect((await source.read(object, context)).get('web')).toEqual({ isCheckPending: true });
    await scene.clock.settle();
    expect(changed).toEqual(['MeshEndpoints/default/web']);
    expect((await source.read(object, context)).get('web')?.headers).toHaveLength(2);
  });

  it('stay in use while another object adds a key of the same Secret', async () => {
    const { source, inputsOf } = sceneOf({ 'default/auth': { token: 'one', id: 'two' } });
    await inputsOf(web);
    const api = checked('api', [header('X-Id', 'auth', 'id')]);
    source.use?.(api);
    expect((await source.read(api, context)).get('web')).toEqual({ isCheckPending: true });
    expect((await source.read(web, context)).get('web')).toEqual({ headers: [['Authorization', 'one']] });
    expect(await inputsOf(api)).toEqual({ headers: [['X-Id', 'two']] });
  });

  it('come from 64 Secrets of an object, and the checks of endpoints beyond name the limit', async () => {
    const secrets = Object.fromEntries(names(80).map(name => [`default/${name}`, { token: name }]));
    const { scene, source } = sceneOf(secrets);
    const object = checkedBy(names(80));
    source.use?.(object);
    await scene.clock.advance(1000);
    expect(scene.reads).toBe(SECRETS_OF_OBJECT);
    const inputs = await source.read(object, context);
    const used = [...inputs.values()].filter(({ headers }) => headers);
    expect(used).toHaveLength(SECRETS_OF_OBJECT);
    expect(problemIn(inputs.get('e64'))).toBe(
      'healthCheck.headersFrom[0] cannot be used: the checks of this object name more than 64 Secrets, and Secret default/s64 is beyond them: store several tokens under different keys of one Secret, or divide the object',
    );
  });

  it('of one namespace are read in turns with those of another', async () => {
    const { scene, source, inputsOf } = sceneOf({ 'quiet/auth': { token: 'one' } });
    scene.failure = new ResourceError('Refused', 'forbidden');
    for (const name of names(1000)) await source.read(checkedBy([`${name}-a`, `${name}-b`], name), context);
    await scene.clock.advance(1000);
    // Half of the places, each for 10 ms.
    expect(scene.reads).toBeLessThanOrEqual(202);
    scene.failure = undefined;
    expect(await inputsOf(inNamespace('quiet', web))).toEqual({ headers: [['Authorization', 'one']] });
  });

  it.each([
    [
      'a missing Secret',
      'none',
      'token',
      'Secret default/none does not exist: create it, or correct secretKeyRef.name',
    ],
    [
      'a missing key',
      'auth',
      'none',
      'Secret default/auth has no key none: add it, or correct secretKeyRef.key',
    ],
    [
      'keys beyond 16 KB',
      'auth',
      'large',
      'the keys of Secret default/auth that headersFrom uses exceed 16 KB: shorten them',
    ],
    [
      'two lines',
      'auth',
      'lines',
      'key lines of Secret default/auth has characters that no header may have: correct it',
    ],
  ])('report %s without its value', async (_, secret, key, why) => {
    const { inputsOf } = sceneOf({
      'default/auth': { token: 'hidden', lines: 'hidden\nHost: other', large: 'x'.repeat(SECRET_BYTES + 1) },
    });
    const object = checked('web', [header('Authorization', secret, key)]);
    expect(problemIn(await inputsOf(object))).toBe(`healthCheck.headersFrom[0] cannot be used: ${why}`);
  });

  it('are never those of mesh-gateway itself', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } }, 'default');
    expect(problemIn(await inputsOf(web))).toBe(
      'healthCheck.headersFrom[0] cannot be used: the Secrets of namespace default are those of mesh-gateway: move the object to another namespace',
    );
    expect(scene.reads).toBe(0);
  });
});
