import { locateBinaries } from '../../../lab/parts/locate.ts';
import { freePorts } from '../../../lab/process/ports.ts';
import { killProcess } from '../../../lab/process/process.ts';
import { runProgram, starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { joinTailnet, startDaemon } from '../../../lab/tailnet/mesh-node.ts';
import { addJoinKey, listNodes } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetNode } from '../../../lab/tailnet/tailnet.ts';
import type { ServedService } from '../../../src/api/served-services.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { dialOn } from '../../../src/serving/dial.ts';
import { localApiOn } from '../../../src/serving/local-api.ts';
import { Serving } from '../../../src/serving/serving.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { nextAddress } from '../relay/running-relay.ts';
import type { TestLab } from './lab.ts';

/** A device that serves VIP services as a mesh pod does: a real tailscaled whose proxy is on an address of its own. */
export type ServingNode = {
  readonly node: TailnetNode;
  /** Its HTTP CONNECT and SOCKS5 proxy, as host:port. */
  readonly proxy: string;
  /** The process of its tailscaled. */
  readonly pid: number;
  readonly serving: Serving;
  readonly update: (services: readonly ServedService[]) => void;
  /** What `tailscale` prints. */
  readonly tailscale: (...args: readonly string[]) => Promise<string>;
  /** Ends its tailscaled. */
  readonly kill: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Joins the tailnet of a lab with a device that serves nothing yet. */
export async function startServingNode({ folder, lab }: TestLab, hostname: string): Promise<ServingNode> {
  const starter = starterIn(folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const [port = 0] = await freePorts(1);
  const host = nextAddress();
  const daemon = startDaemon(starter, { hostname, proxy: `${host}:${port}` });
  const { key } = await addJoinKey(lab.tailnet.admin, { tags: ['tag:mesh'] });
  await joinTailnet(starter, { ...daemon, shieldsUp: false }, lab.tailnet, key);
  const node = await until(`${hostname} to be reachable`, async () => {
    const nodes = await listNodes(lab.tailnet.admin);
    return nodes.find(each => each.hostname === hostname && each.reachable);
  });
  const log = createLog({ level: 'info', to: { write: () => undefined } });
  const { socket } = daemon;
  const deps = { localApi: localApiOn(socket), dial: dialOn(socket, systemClock), log, clock: systemClock };
  const serving = new Serving({ maxConnections: 100 }, deps);
  return {
    node,
    proxy: `${host}:${port}`,
    pid: daemon.pid,
    serving,
    update: services => serving.update(services),
    tailscale: (...args) => runProgram(starter, 'tailscale', [`--socket=${daemon.socket}`, ...args]),
    kill: () => killProcess(daemon),
    close: () => serving.close(),
  };
}
