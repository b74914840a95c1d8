import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CLUSTER_FOLDER } from '../../../lab/cluster/cluster-folder.ts';
import { processesOf } from '../../../lab/process/process-table.ts';

const SETTINGS = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'net/ipv4/ip_forward',
];

const NAMESPACES = ['net', 'pid', 'mnt', 'uts', 'ipc'];

/** The default folders of Kubernetes and containerd. */
const PLACES = [
  '/etc/cni',
  '/opt',
  '/run/containerd',
  '/run/netns',
  '/usr/libexec/kubernetes',
  '/var/lib/cni',
]
  .concat([
    '/var/lib/containerd',
    '/var/lib/etcd',
    '/var/lib/kubelet',
    '/var/log/containers',
    '/var/log/pods',
  ])
  .concat([join(homedir(), '.kube')]);

/** What a cluster could leave behind on this machine: the kernel's state. */
export function machineState() {
  return {
    processes: processesOf(CLUSTER_FOLDER),
    folder: existsSync(CLUSTER_FOLDER),
    interfaces: linesOf('ip', '-brief', 'link').map(line => line.split(' ')[0]),
    routes: linesOf('ip', 'route'),
    networkNamespaces: linesOf('ip', 'netns', 'list'),
    namespaces: NAMESPACES.map(type => `${type} ${linesOf('lsns', '--noheadings', `--type=${type}`).length}`),
    packetRules: linesOf('iptables-save').filter(line => !/^[#:]/.test(line)),
    mounts: readFileSync('/proc/mounts', 'utf8').trim().split('\n'),
    files: PLACES.flatMap(entriesBelow),
    cgroups: cgroupsIn('/sys/fs/cgroup'),
    settings: SETTINGS.map(name => `${name} ${readFileSync(`/proc/sys/${name}`, 'utf8').trim()}`),
  };
}

function linesOf(command: string, ...args: readonly string[]): readonly string[] {
  const output = execFileSync(command, [...args], { encoding: 'utf8' });
  return output
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
    .sort();
}

function entriesBelow(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return [
    folder,
    ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => `${folder}/${name}`),
  ];
}

/** Two levels: each controller has a folder where there is more than one hierarchy. */
function cgroupsIn(root: string): readonly string[] {
  const folders = (path: string) =>
    readdirSync(path, { withFileTypes: true }).flatMap(entry =>
      entry.isDirectory() ? [`${path}/${entry.name}`] : [],
    );
  return folders(root).flatMap(folder => [folder, ...folders(folder)]);
}
