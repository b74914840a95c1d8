import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { processesWith } from '../../../lab/process/process-table.ts';

const run = promisify(execFile);

/** More than a front takes, which lets what it refuses wait for 2 s. */
const TIMEOUT_MS = 10_000;

/** Asks a proxy for tunnels to targets at once, and prints the status of each, or why there is none. */
const SCRIPT = `
const { request } = require('node:http');
const [proxy, timeoutMs, ...targets] = process.argv.slice(1);
const { hostname, port } = new URL('http://' + proxy);
const ask = path => new Promise(resolve => {
  const host = hostname.replace(/[[\\]]/g, '');
  const sent = request({ host, port, method: 'CONNECT', path, headers: { host: path }, agent: false });
  sent.setTimeout(Number(timeoutMs), () => sent.destroy(new Error('timeout')));
  sent.once('connect', ({ statusCode }, socket) => (socket.destroy(), resolve(String(statusCode))));
  sent.once('error', error => resolve(error.code ?? error.message));
  sent.end();
});
Promise.all(targets.map(ask)).then(found => console.log(JSON.stringify(found)));
`;

/** The process that has an environment variable, whose pod has the network from which a proxy is asked. */
export function processOf(variable: string, value: string): number {
  const [pid] = processesWith(variable, value);
  if (pid === undefined) throw new Error(`no process with ${variable}=${value} runs`);
  return pid;
}

/** What a proxy answers to CONNECT from the network of a process, by target. */
export async function askProxyFrom(
  pid: number,
  proxy: string,
  targets: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const script = [process.execPath, '--eval', SCRIPT, proxy, String(TIMEOUT_MS), ...targets];
  const { stdout } = await run('nsenter', ['--target', String(pid), '--net', ...script]);
  const answers = JSON.parse(stdout) as readonly string[];
  return Object.fromEntries(targets.map((target, index) => [target, answers[index] ?? '']));
}
