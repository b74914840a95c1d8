import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../src/api/generated/types.ts';
import { secretHeaders } from '../../src/endpoint-inputs/secret-headers.ts';
import { ResourceError } from '../../src/resources/resources.ts';
import { endpoint } from '../support/objects.ts';
import { resourceOf } from '../support/resources/resources.ts';
import { endpointsObject } from '../support/traffic/objects.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const { signal } = new AbortController();

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
function sceneOf(secrets: Record<string, Readonly<Record<string, string>>>, ownNamespace = 'mesh-system') {
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
    ownNamespace,
    clock,
    maxAgeMs: 15_000,
  });
  const inputsOf = async (object: Kinds['MeshEndpoints']) => (await source.read(object, signal)).get('web');
  return { scene, source, inputsOf };
}

const web = checked('web', [header('Authorization', 'auth')]);

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
    await scene.clock.advance(15_000);
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'two']] });
  });

  it('keep their values while the API server does not respond', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    await inputsOf(web);
    scene.failure = new ResourceError('Unavailable', 'no response');
    await scene.clock.advance(15_000);
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'one']] });
  });

  it('are forgotten with the last object that needs them', async () => {
    const { scene, source, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    await inputsOf(web);
    source.forget?.('MeshEndpoints/default/web');
    scene.failure = new ResourceError('Unavailable', 'no response');
    expect(await inputsOf(web)).toEqual({
      checkProblem:
        'healthCheck.headersFrom[0] cannot be used: Secret default/auth cannot be read: no response',
    });
  });

  it('need a right, and the problem has the RoleBinding that grants it', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } });
    scene.failure = new ResourceError('Refused', 'forbidden');
    const { checkProblem = '' } = (await inputsOf(web)) ?? {};
    expect(checkProblem)
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
    expect(await inputsOf(web)).toEqual({ headers: [['Authorization', 'one']] });
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
      'two lines',
      'auth',
      'lines',
      'key lines of Secret default/auth has characters that no header may have: correct it',
    ],
  ])('report %s without its value', async (_, secret, key, why) => {
    const { inputsOf } = sceneOf({ 'default/auth': { token: 'hidden', lines: 'hidden\nHost: other' } });
    const object = checked('web', [header('Authorization', secret, key)]);
    expect(await inputsOf(object)).toEqual({
      checkProblem: `healthCheck.headersFrom[0] cannot be used: ${why}`,
    });
  });

  it('are never those of mesh-gateway itself', async () => {
    const { scene, inputsOf } = sceneOf({ 'default/auth': { token: 'one' } }, 'default');
    expect(await inputsOf(web)).toEqual({
      checkProblem:
        'healthCheck.headersFrom[0] cannot be used: the Secrets of namespace default are those of mesh-gateway: move the object to another namespace',
    });
    expect(scene.reads).toBe(0);
  });
});
