import { request } from 'node:http';
import { MESH_POD } from '../../../api/names.ts';

/** What meshd reports about itself. */
export type MeshdState = {
  /** Whether it has found a relay (DERP), without which only devices on a direct path are reached. */
  readonly hasRelay: boolean;
  /** The number of its health messages: a relay or the control server that it cannot reach, for one. */
  readonly problems: number;
};

const TIMEOUT_MS = 1000;

/** Far more than its metrics are long. */
const MAX_CHARACTERS = 100_000;

/** Reads the metrics of the meshd at the address of a mesh pod; undefined where it does not respond, or has others. */
export function readMeshdState(address: string): Promise<MeshdState | undefined> {
  return new Promise(resolve => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const options = { host: address, port: MESH_POD.ports.metrics, path: '/metrics', agent: false, signal };
    const sent = request(options, response => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        body += part;
        if (body.length > MAX_CHARACTERS) response.destroy();
      });
      response.once('end', () => resolve(stateIn(body)));
      response.once('close', () => resolve(undefined));
      response.on('error', () => resolve(undefined));
    });
    sent.on('error', () => resolve(undefined));
    sent.end();
  });
}

function stateIn(metrics: string): MeshdState | undefined {
  const relay = /^tailscaled_home_derp_region_id (\d+)$/m.exec(metrics)?.[1];
  const problems = /^tailscaled_health_messages\{type="warning"\} (\d+)$/m.exec(metrics)?.[1];
  if (relay === undefined || problems === undefined) return undefined;
  return { hasRelay: relay !== '0', problems: Number(problems) };
}
