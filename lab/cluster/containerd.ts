import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Starter, Wrapper } from '../process/starter.ts';
import { until } from '../process/wait.ts';
import { imageOf } from './images/table.ts';
import { NETWORK } from './network.ts';

const run = promisify(execFile);

/** The socket of containerd in the sandbox, which has its own /run. */
export const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';

/** Starts containerd, with its data in the cluster's folder and pods on the cluster's bridge. */
export function startContainerd(starter: Starter, cniPrograms: string): void {
  const folder = join(starter.folder, 'containerd');
  const networks = join(starter.folder, 'cni');
  for (const made of [folder, networks]) mkdirSync(made, { mode: 0o700 });
  const network = podNetwork(join(starter.folder, 'cni-addresses'));
  writeFileSync(join(networks, '10-mesh.conflist'), JSON.stringify(network));
  const config = join(starter.folder, 'containerd.toml');
  writeFileSync(config, configuration(folder, networks, cniPrograms));
  starter.start('containerd', 'containerd', ['--config', config]);
}

/** Runs the command line of containerd. */
function ctrIn({ pathOf }: Pick<Starter, 'pathOf'>, inside: Wrapper) {
  return async (...args: readonly string[]): Promise<true> => {
    const [command, all] = inside(pathOf('ctr'), ['--address', CONTAINERD_SOCKET, ...args]);
    await run(command, [...all]);
    return true;
  };
}

/** Waits until containerd answers. */
export async function waitForContainerd(starter: Pick<Starter, 'pathOf'>, inside: Wrapper): Promise<void> {
  const ctr = ctrIn(starter, inside);
  await until('containerd to answer', () => ctr('version'));
}

/** Imports images from files into a containerd that answers. */
export async function importImages(
  starter: Pick<Starter, 'pathOf'>,
  inside: Wrapper,
  files: readonly string[],
): Promise<void> {
  const ctr = ctrIn(starter, inside);
  for (const file of files) await ctr('--namespace', 'k8s.io', 'images', 'import', file);
}

const UNUSED_PLUGINS = [
  ...['btrfs', 'zfs', 'devmapper', 'blockfile', 'erofs'].map(name => `io.containerd.snapshotter.v1.${name}`),
  'io.containerd.nri.v1.nri',
  'io.containerd.tracing.processor.v1.otlp',
  'io.containerd.internal.v1.tracing',
];

/** restrict_oom_score_adj: CAP_SYS_RESOURCE may be missing. */
function configuration(folder: string, networks: string, cniPrograms: string): string {
  return `version = 3
root = "${folder}"
state = "/run/containerd"
disabled_plugins = ${JSON.stringify(UNUSED_PLUGINS)}

[grpc]
address = "${CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${imageOf('pause')}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["${cniPrograms}"]
conf_dir = "${networks}"
`;
}

function podNetwork(addresses: string): unknown {
  const { bridge, pods, firstPod, bridgeAddress } = NETWORK;
  const ipam = {
    type: 'host-local',
    dataDir: addresses,
    ranges: [[{ subnet: pods, rangeStart: firstPod, gateway: bridgeAddress }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  return {
    cniVersion: '1.0.0',
    name: 'mesh',
    plugins: [
      { type: 'bridge', bridge, isGateway: true, hairpinMode: true, ipam },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}
