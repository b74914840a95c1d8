import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { NETWORK } from '../../../lab/cluster/network.ts';
import type { Cluster } from '../../../lab/cluster/cluster-folder.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { messageOf } from '../../../lab/process/errors.ts';
import { until } from '../../../lab/process/wait.ts';
import { validate } from '../../../src/api/validation/validate.ts';
import { MESH_POD, poolName } from '../../../src/api/names.ts';
import type { ControlApi } from '../../../src/control/control.ts';
import { poolObjects } from '../../../src/controllers/mesh-tailnet/pool/objects.ts';
import { imageOf } from '../../../lab/cluster/images/table.ts';
import { named } from '../declared.ts';
import { AUTHORITY } from '../kubernetes/wire-certificates.ts';
import { connectTunnel } from '../lab/tunnel.ts';
import { meshTailnet } from '../objects.ts';

/** A pool whose objects and join keys a test has made, as the operator does. */
export type TestPool = {
  readonly namespace: string;
  /** The name of its StatefulSet. */
  readonly name: string;
  /** The installation id in the hostnames of its devices. */
  readonly installation: string;
  /** The Service, as host:port. */
  readonly proxy: string;
  readonly podRef: (ordinal: number) => { apiVersion: 'v1'; kind: 'Pod'; namespace: string; name: string };
  readonly secretRef: (ordinal: number) => {
    apiVersion: 'v1';
    kind: 'Secret';
    namespace: string;
    name: string;
  };
  readonly remove: () => Promise<void>;
};

/** What a pool is made of: its namespace, and the control API that creates its join keys. */
type PoolSetup = {
  readonly namespace: string;
  readonly control: Pick<ControlApi, 'createKey'>;
  readonly controlURL: string;
  readonly replicas: number;
  /** Added to the spec of its MeshTailnet. */
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly ca?: string;
};

/** Creates a MeshTailnet, Secrets with join keys, and the objects of its pool; does not wait for the pods. */
export async function createPool(
  { access, tailnet: { url } }: Cluster,
  { namespace, control, controlURL, replicas, spec = {}, ca }: PoolSetup,
): Promise<TestPool> {
  const client = kubeClient(access);
  await applyAll(client, readManifests('dist/crds'));
  const installation = crypto.randomUUID().slice(0, 8);
  const fields = {
    tailnet: `${namespace}.ts.net`,
    loginServer: url,
    pool: { image: imageOf('tailscale') },
    ...spec,
  };
  const owner = await client.apply(named(meshTailnet(fields), namespace) as KubeObject);
  const verdict = validate('MeshTailnet', owner);
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  const name = poolName(namespace);
  const objects = poolObjects({
    tailnet: verdict.object,
    installation,
    namespace,
    controlURL,
    replicas,
    ordinals: replicas,
    defaults: {},
    ca,
    relayImage: undefined,
  });
  const place = (ordinal: number) => ({ apiVersion: 'v1', namespace, name: `${name}-${ordinal}` }) as const;
  const secretRef = (ordinal: number) => ({ kind: 'Secret', ...place(ordinal) }) as const;
  for (let ordinal = 0; ordinal < replicas; ordinal++) {
    const { secret: authkey } = await control.createKey({
      description: `mesh-gateway ${installation} ${namespace} ${ordinal}`,
      tags: ['tag:mesh'],
      expirySeconds: 3600,
      ephemeral: false,
      preauthorized: true,
    });
    const { apiVersion, kind, ...metadata } = secretRef(ordinal);
    await client.apply({ apiVersion, kind, metadata, stringData: { authkey } });
  }
  const all = [...objects.supporting, objects.statefulSet].map(object => ({
    ...object,
    metadata: { ...object.metadata, namespace },
  }));
  await applyAll(client, all);
  const service = await client.get({ apiVersion: 'v1', kind: 'Service', namespace, name });
  const { clusterIP } = service['spec'] as { readonly clusterIP: string };
  return {
    namespace,
    name,
    installation,
    secretRef,
    proxy: `${clusterIP}:${MESH_POD.ports.proxy}`,
    podRef: ordinal => ({ kind: 'Pod', ...place(ordinal) }),
    remove: () => client.remove({ apiVersion: owner.apiVersion, kind: owner.kind, name: namespace }),
  };
}

/** Opens and ends connections through a proxy, one after the other, until it is stopped. */
export function openTunnels(proxy: string, target: string) {
  const failures: string[] = [];
  let [opened, isStopped] = [0, false];
  const open = async () => {
    while (!isStopped) {
      try {
        (await tunnelWithin(proxy, target, TUNNEL_MS)).destroy();
        opened++;
      } catch (error) {
        failures.push(messageOf(error));
      }
      await sleep(20);
    }
  };
  const work = open();
  return {
    failures,
    /** Waits until a number of further connections have been opened. */
    more: async (count: number) => {
      const wanted = opened + count;
      await until('more connections', () => opened >= wanted);
    },
    stop: async () => {
      isStopped = true;
      await work;
    },
  };
}

/** More than a busy machine takes; a connection to a pod that has ended fails later or never opens. */
const TUNNEL_MS = 10_000;

/** A connection, or an error where there is none in time. */
async function tunnelWithin(proxy: string, target: string, ms: number): Promise<Socket> {
  const opening = connectTunnel(proxy, target);
  const socket = await Promise.race([opening, sleep(ms, undefined)]);
  if (socket) return socket;
  opening.then(
    late => late.destroy(),
    () => undefined,
  );
  throw new Error(`no connection after ${ms} ms`);
}

/** The control server of a tailnet with a certificate of a private CA, under a name that only its proxy knows. */
export async function startLoginServer(tailnetURL: string) {
  const to = new URL(tailnetURL);
  const tunnels: string[] = [];
  const join = (client: Duplex, port: number, host: string, onOpen: () => void = () => undefined) => {
    const upstream = connect(port, host, onOpen);
    client.on('error', () => upstream.destroy()).pipe(upstream);
    upstream.on('error', () => client.destroy()).pipe(client);
  };
  const server = createTlsServer({ ...AUTHORITY.server }, client => {
    join(client, Number(to.port), to.hostname);
  });
  const proxy = createServer().on('connect', ({ url = '' }: IncomingMessage, client: Duplex) => {
    tunnels.push(url);
    const { hostname, port } = new URL(`http://${url}`);
    join(client, Number(port), hostname === LOGIN_HOST ? NETWORK.outer : hostname, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
    });
  });
  const portOf = async (listener: typeof server | typeof proxy) => {
    listener.listen(0, NETWORK.outer);
    await once(listener, 'listening');
    return (listener.address() as AddressInfo).port;
  };
  return {
    url: `https://${LOGIN_HOST}:${await portOf(server)}`,
    proxyURL: `http://${NETWORK.outer}:${await portOf(proxy)}`,
    /** The targets of all tunnels that were opened. */
    tunnels: () => tunnels,
    close: () => {
      proxy.close();
      server.close();
    },
  };
}

/** A name in the certificate, which no DNS server has. */
const LOGIN_HOST = 'kube.test';
