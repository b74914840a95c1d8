import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GROUP } from '../../src/api/generated/kinds.ts';
import { imageOf } from '../cluster/images/table.ts';
import { parseManifests } from '../kube/manifests.ts';
import type { KubeObject } from '../kube/object.ts';

/** The target port of each port of each Service, by `namespace/name:port`. */
type TargetPorts = ReadonlyMap<string, number>;

/** How a pod becomes a device of the tailnet. */
export type Joining = { readonly loginServer: string; readonly key: string };

/**
 * Rewrites the manifests of the suite in a folder: MeshEndpoints take the place of Services as backends, and the pods
 * of Deployments are devices of the tailnet.
 */
export function rewriteManifests(folder: string, joining: Joining): void {
  const read = (path: string) => parseManifests(readFileSync(join(folder, path), 'utf8'), path);
  const base = read(BASE);
  const tests = readdirSync(join(folder, 'tests')).filter(name => name.endsWith('.yaml'));
  for (const path of [BASE, ...tests.map(name => join('tests', name))]) {
    const objects = read(path);
    const ports = targetPorts([...base, ...objects]);
    const rewritten = objects.map(object => withMeshBackends(withDevice(object, joining), ports));
    // JSON is YAML in which no text can be taken for a number or a boolean.
    writeFileSync(join(folder, path), rewritten.map(object => `---\n${JSON.stringify(object)}\n`).join(''));
  }
}

const BASE = 'base/manifests.yaml';

type ServiceSpec = { readonly ports?: readonly { readonly port: number; readonly targetPort?: number }[] };

/** The target ports of the Services among objects. */
export function targetPorts(objects: readonly KubeObject[]): TargetPorts {
  return new Map(
    objects
      .filter(({ kind }) => kind === 'Service')
      .flatMap(({ metadata: { namespace, name }, spec }) =>
        ((spec as ServiceSpec).ports ?? []).map(
          ({ port, targetPort }) => [`${namespace}/${name}:${port}`, targetPort ?? port] as const,
        ),
      ),
  );
}

type Reference = { readonly group?: string; readonly kind?: string };

type BackendRef = Reference & { readonly name: string; readonly namespace?: string; readonly port?: number };

type Rule = { readonly backendRefs?: readonly BackendRef[] };

/** The same route or ReferenceGrant with MeshEndpoints in place of Services; filters, such as mirrors, stay as they are. */
export function withMeshBackends(object: KubeObject, ports: TargetPorts): KubeObject {
  const { kind, metadata } = object;
  if (kind === 'ReferenceGrant') {
    const spec = object['spec'] as { readonly to: readonly Reference[] };
    return { ...object, spec: { ...spec, to: spec.to.map(withMeshKind) } };
  }
  if (!/^(HTTP|GRPC|TLS|TCP|UDP)Route$/.test(kind)) return object;
  const spec = object['spec'] as { readonly rules?: readonly Rule[] };
  const rules = spec.rules?.map(rule => ({
    ...rule,
    ...(rule.backendRefs && {
      backendRefs: rule.backendRefs.map(ref => withTargetPort(ref, metadata.namespace, ports)),
    }),
  }));
  return { ...object, spec: { ...spec, ...(rules && { rules }) } };
}

function isService({ group = '', kind = 'Service' }: Reference): boolean {
  return group === '' && kind === 'Service';
}

function withMeshKind<Ref extends Reference>(ref: Ref): Ref {
  return isService(ref) ? { ...ref, group: GROUP, kind: 'MeshEndpoints' } : ref;
}

/** A port of a MeshEndpoints is that of its endpoints. */
function withTargetPort(ref: BackendRef, namespace: string | undefined, ports: TargetPorts): BackendRef {
  if (!isService(ref)) return ref;
  const port = ports.get(`${ref.namespace ?? namespace}/${ref.name}:${ref.port}`) ?? ref.port;
  return { ...withMeshKind(ref), ...(port !== undefined && { port }) };
}

type PodTemplate = { readonly spec: { readonly containers: readonly object[] } };

/** A Deployment with a device beside the container of each pod; the device forwards to the ports of the pod. */
export function withDevice(object: KubeObject, joining: Joining): KubeObject {
  if (object.kind !== 'Deployment') return object;
  const spec = object['spec'] as { readonly template: PodTemplate };
  const { template } = spec;
  const containers = [...template.spec.containers, deviceOf(joining)];
  const readinessGates = [{ conditionType: REACHABLE }];
  // The suite's backend does not end by a signal.
  const pod = { ...template.spec, containers, readinessGates, terminationGracePeriodSeconds: 2 };
  return { ...object, spec: { ...spec, template: { ...template, spec: pod } } };
}

/**
 * The condition of a pod without which it is not ready: its device can be reached, and is an endpoint. Joining alone is up to 15 s
 * earlier, and the suite begins with its tests, some of which wait for 3 s only, once all pods are ready.
 */
export const REACHABLE = `${GROUP}/reachable`;

const HEALTH_PORT = 9002;

/** A container that joins the tailnet under the name of its pod, and is ready when it has joined. */
function deviceOf({ loginServer, key }: Joining) {
  const variables = {
    TS_HOSTNAME: '$(POD_NAME)',
    TS_AUTHKEY: key,
    TS_EXTRA_ARGS: `--login-server=${loginServer}`,
    TS_USERSPACE: 'true',
    TS_KUBE_SECRET: '',
    TS_STATE_DIR: '/tmp',
    TS_ACCEPT_DNS: 'false',
    TS_NO_LOGS_NO_SUPPORT: 'true',
    TS_ENABLE_HEALTH_CHECK: 'true',
    TS_LOCAL_ADDR_PORT: `[::]:${HEALTH_PORT}`,
  };
  return {
    name: 'device',
    image: imageOf('tailscale'),
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ...Object.entries(variables).map(([name, value]) => ({ name, value })),
    ],
    readinessProbe: { httpGet: { path: '/healthz', port: HEALTH_PORT }, periodSeconds: 1 },
  };
}
