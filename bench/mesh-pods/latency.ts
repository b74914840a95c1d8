import { Client, ProxyAgent, request } from 'undici';
import type { Dispatcher } from 'undici';
import { applyAll } from '../../lab/kube/apply.ts';
import { until } from '../../lab/process/wait.ts';
import { readServices } from '../../lab/tailnet/backends.ts';
import { MESH_POD } from '../../src/api/names.ts';
import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import type { Installation } from '../../lab/install/installation.ts';
import { MESH_HOST, serviceObjects, SERVICE_HOST } from '../../lab/install/objects.ts';
import { addressOf, meshPods } from './pool.ts';

const [WARM_UP, REQUESTS] = [200, 2_000];

/** A path to the service; all requests use one connection. */
type Path = {
  readonly url: string;
  readonly host: string;
  readonly by: Dispatcher;
  readonly backend: string;
};

/** Latency on three paths, measured in turns, one request at a time, so that other load affects all paths alike. */
export async function latencyFigures(installation: Installation): Promise<readonly Figure[]> {
  const { client, namespace, remote, gateway } = installation;
  await applyAll(client, serviceObjects(namespace));
  const [pod] = await meshPods(installation);
  if (!pod) throw new Error('there is no mesh pod');
  const proxy = new ProxyAgent({
    uri: `http://${addressOf(pod)}:${MESH_POD.ports.proxy}`,
    proxyTunnel: true,
  });
  const envoy = `http://${gateway}`;
  const paths = {
    proxy: {
      url: `http://${remote.address}:${remote.ports['http']}/hello`,
      host: MESH_HOST,
      by: proxy,
      backend: remote.hostname,
    },
    envoy: { url: `${envoy}/hello`, host: SERVICE_HOST, by: new Client(envoy), backend: 'service' },
    both: { url: `${envoy}/hello`, host: MESH_HOST, by: new Client(envoy), backend: remote.hostname },
  };
  try {
    await until('the Service to respond', () => requestMs(paths.envoy));
    return await figuresOf(paths, () => readServices(remote.control).then(({ http }) => http.requests));
  } finally {
    for (const { by } of Object.values(paths)) await by.close();
  }
}

async function figuresOf(
  paths: Readonly<Record<'proxy' | 'envoy' | 'both', Path>>,
  received: () => Promise<number>,
): Promise<readonly Figure[]> {
  const took: Record<keyof typeof paths, number[]> = { proxy: [], envoy: [], both: [] };
  const before = await received();
  for (let turn = 0; turn < WARM_UP + REQUESTS; turn++) {
    for (const name of ['proxy', 'envoy', 'both'] as const) {
      const ms = await requestMs(paths[name]);
      if (turn >= WARM_UP) took[name].push(ms);
    }
  }
  const since = (await received()) - before;
  if (since < 2 * (WARM_UP + REQUESTS)) throw new Error(`the device received only ${since} requests`);
  const [proxy, envoy, both] = [median(took.proxy), median(took.envoy), median(took.both)];
  return [
    { name: 'latency through one mesh pod alone, p50', value: proxy, unit: 'ms' },
    { name: 'latency through Envoy alone, p50', value: envoy, unit: 'ms' },
    { name: 'latency through Envoy and a mesh pod, p50', value: both, unit: 'ms' },
    { name: 'the latter to the sum of the two', value: both / (proxy + envoy), unit: 'x', aim: 1.25 },
  ];
}

/** The time from a request to the end of its response; fails if another backend responds. */
async function requestMs({ url, host, by, backend }: Path): Promise<number> {
  const begun = performance.now();
  const { statusCode, body } = await request(url, { dispatcher: by, headers: { host } });
  const text = await body.text();
  const ms = performance.now() - begun;
  if (statusCode !== 200 || !text.includes(`"backend":"${backend}"`))
    throw new Error(`${backend} was expected to respond: ${statusCode} ${text}`);
  return ms;
}
