import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { markOf } from '../process/process-table.ts';
import { startProcess, tailOf } from '../process/process.ts';
import { asItIs } from '../process/starter.ts';
import type { Wrapper } from '../process/starter.ts';
import type { ProcessNotes } from '../process/state-folder.ts';
import { until } from '../process/wait.ts';
import { NETWORK, NODE_NAME } from './network.ts';

const run = promisify(execFile);

/**
 * The PID, mount and network namespaces of a cluster. When their first process ends, the kernel ends all others in them and
 * removes every mount, interface, bridge and iptables rule, so one recorded pid is enough to clean up.
 */
export type Sandbox = {
  /** Turns a command into one that runs inside. */
  readonly inside: Wrapper;
};

/** The name of the first process. */
export const SANDBOX = 'sandbox';

/**
 * Kernel settings that the kubelet requires, and would change for the whole machine: files with these values are mounted
 * over the real ones.
 */
const KERNEL_SETTINGS = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
};

const SHOW_SETTINGS = Object.entries(KERNEL_SETTINGS)
  .map(([name, value], index) => {
    const file = `/run/setting-${index}`;
    return `echo ${value} > ${file}; mount --bind ${file} /proc/sys/${name}`;
  })
  .join('\n');

/** Folders that Kubernetes and containerd write to and that cannot be changed: a tmpfs is mounted over each. */
const COVERED = ['/var/lib', '/var/log', '/opt', '/usr/libexec'];

/** The first process: it sleeps, reaps orphans, and ends on SIGTERM. $1 is the folder of the cluster. */
const INIT = `set -e
trap 'exit 0' TERM
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/own && mount --bind "$1" /run/own
for folder in ${COVERED.join(' ')}; do
  [ -d $folder ] || continue
  mkdir -p /run/written$folder /run/work$folder
  mount -t overlay overlay -o lowerdir=$folder,upperdir=/run/written$folder,workdir=/run/work$folder $folder
done
mount --bind /run/own "$1"
${SHOW_SETTINGS}
hostname ${NODE_NAME}
echo ready
while :; do sleep 86400 & wait; done
`;

const NAMESPACES = ['--net', '--pid', '--mount', '--uts', '--ipc'];

/** Creates the namespaces and connects their network with this machine's. */
export async function openSandbox(folder: ProcessNotes, searchPath: string): Promise<Sandbox> {
  const record = startProcess({
    name: SANDBOX,
    command: 'unshare',
    args: [
      ...NAMESPACES,
      '--fork',
      '--mount-proc',
      '--kill-child=KILL',
      'bash',
      '-c',
      INIT,
      SANDBOX,
      folder.path,
    ],
    environment: { PATH: searchPath, ...markOf(folder.path) },
    folder: folder.path,
    log: join(folder.path, `${SANDBOX}.log`),
  });
  folder.addProcess(record);
  const init = await until(
    'the namespaces of the cluster',
    note => {
      note(tailOf(record));
      const isReady = readFileSync(record.log, 'utf8').includes('ready');
      return Promise.resolve(isReady ? firstChildOf(record.pid) : undefined);
    },
    { everyMs: 10 },
  );
  const enter = ['--target', init, '--net', '--mount', '--pid', '--uts', '--ipc', '--'];
  const inside: Wrapper = (command, args) => ['nsenter', [...enter, command, ...args]];
  await joinNetworks(init, inside);
  return { inside };
}

function firstChildOf(pid: number): string | undefined {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0] || undefined;
}

/** Routes between this machine and the addresses of pods and Services. */
async function joinNetworks(init: string, inside: Wrapper): Promise<void> {
  const { outerInterface, outer, inner, bridge, bridgeAddress, pods, services } = NETWORK;
  await script(
    asItIs,
    `ip link add ${outerInterface} type veth peer name eth0 netns ${init}
     ip addr add ${outer}/30 dev ${outerInterface}
     ip link set ${outerInterface} up`,
  );
  await script(
    inside,
    `ip link set lo up
     ip addr add ${inner}/30 dev eth0
     ip link set eth0 up
     ip link add ${bridge} type bridge
     ip addr add ${bridgeAddress}/24 dev ${bridge}
     ip link set ${bridge} up
     echo 1 > /proc/sys/net/ipv4/ip_forward`,
  );
  await script(
    asItIs,
    `ip route add ${pods} via ${inner} src ${outer}
     ip route add ${services} via ${inner} src ${outer}`,
  );
}

async function script(wrap: Wrapper, text: string): Promise<void> {
  const [command, args] = wrap('sh', ['-ec', text]);
  try {
    await run(command, [...args]);
  } catch (error) {
    const reason = String((error as { readonly stderr?: string }).stderr).trim();
    throw new Error(
      `the network of the cluster (10.213.0.0/16, ${NETWORK.outerInterface}) cannot be created: ${reason}`,
      {
        cause: error,
      },
    );
  }
}
