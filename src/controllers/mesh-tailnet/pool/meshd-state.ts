import { request } from 'node:http';
import { familyOf } from '../../../api/ip.ts';
import { isRecord, jsonObjectIn } from '../../../api/json.ts';
import { MESH_POD, RELAY } from '../../../api/names.ts';

/** What meshd reports about itself. */
export type MeshdState = {
  /** Whether it has found a relay (DERP), without which only devices on a direct path are reached. */
  readonly hasRelay: boolean;
  /** The number of its health messages: a relay or the control server that it cannot reach, for one. */
  readonly problems: number;
  /** The addresses of callers that the front of the pod has refused lately. */
  readonly refusedCallers?: readonly string[];
};

const TIMEOUT_MS = 1000;

/** As many as a front keeps. */
const MAX_CALLERS = 16;

/** Far more than its metrics are long. */
const MAX_CHARACTERS = 100_000;

/**
 * Reads the metrics of the meshd at the address of a mesh pod, and what its front has refused; undefined where meshd does not
 * respond, or has other metrics.
 */
export async function readMeshdState(address: string): Promise<MeshdState | undefined> {
  const [metrics, report] = await Promise.all([
    read(address, MESH_POD.ports.metrics, '/metrics'),
    read(address, RELAY.ports.http, '/relay'),
  ]);
  const state = metrics === undefined ? undefined : stateIn(metrics);
  const refusedCallers = report === undefined ? [] : refusedCallersIn(report);
  return state && (refusedCallers.length > 0 ? { ...state, refusedCallers } : state);
}

/** Resolves with the body of a response; undefined where there is none. */
function read(host: string, port: number, path: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const options = { host, port, path, agent: false, signal };
    const sent = request(options, response => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        body += part;
        if (body.length > MAX_CHARACTERS) response.destroy();
      });
      response.once('end', () => resolve(body));
      response.once('close', () => resolve(undefined));
      response.on('error', () => resolve(undefined));
    });
    sent.on('error', () => resolve(undefined));
    sent.end();
  });
}

/** A compromised mesh pod may report anything. */
function refusedCallersIn(report: string): readonly string[] {
  const { front } = jsonObjectIn(report) ?? {};
  const callers = isRecord(front) ? front['refusedCallers'] : undefined;
  if (!Array.isArray(callers)) return [];
  return callers
    .slice(0, MAX_CALLERS)
    .filter((each): each is string => typeof each === 'string' && familyOf(each) !== undefined);
}

function stateIn(metrics: string): MeshdState | undefined {
  const relay = /^tailscaled_home_derp_region_id (\d+)$/m.exec(metrics)?.[1];
  const problems = /^tailscaled_health_messages\{type="warning"\} (\d+)$/m.exec(metrics)?.[1];
  if (relay === undefined || problems === undefined) return undefined;
  return { hasRelay: relay !== '0', problems: Number(problems) };
}
