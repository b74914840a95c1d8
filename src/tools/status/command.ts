import { parseArgs } from 'node:util';
import { ENVOY_POD, NAMESPACE, PORTS } from '../../api/names.ts';
import { formatProblem } from '../../api/problem.ts';
import { KubeError } from '../../kubernetes/transport/transport.ts';
import type { KubeTransport, TextTransport } from '../../kubernetes/transport/transport.ts';
import { readDeclarations, withCluster } from '../check/cluster.ts';
import type { OpenPort } from '../check/cluster.ts';
import type { TrafficSettings } from '../check/traffic.ts';
import { CONFIGURATION, CONFIGURATION_HELP, configuredBy } from '../configuration.ts';
import { labelled, listEnvoys, readList } from '../doctor/cluster.ts';
import { isReady, textAt } from '../doctor/observed.ts';
import { gatewayOf, readEnvoys, servingIn } from '../envoy/admin.ts';
import { outputJson, problemJson } from '../json.ts';
import { plainText } from '../plain-text.ts';
import { COLOR_HELP, fitting, lookOf, painted } from '../terminal.ts';
import type { Look } from '../terminal.ts';
import { envoysStatusOf } from './envoys.ts';
import { SERVER_LABELS, statusOf } from './status.ts';
import type { ReadServer, Status, StatusInput } from './status.ts';

/** What `mesh-gateway help status` prints. */
export const STATUS_HELP = `mesh-gateway status [options]

Prints what became of the objects: for each Gateway with routes to MeshEndpoints
its revision, and whether Envoy Gateway has translated it; its Envoys; for each
extension server the streams of Envoys and the endpoints that they acknowledged
or rejected; and the text of each rejection of the last hour. It reads the log
and the metrics of the extension servers with your own rights (pods/log and
pods/proxy), and prints what it could not read instead of a figure.

  --envoy       also read what each Envoy has, by a port-forward to its admin
                interface (pods/portforward), and print first where it differs
                from the objects
  --namespace   of the installation (default: ${NAMESPACE})
  --envoy-gateway-namespace
                of Envoy Gateway (default: ${ENVOY_POD.namespace})
${CONFIGURATION_HELP}
  --output      text, which is the default, or json
${COLOR_HELP}
  --kubeconfig, --context
                the cluster, as in mesh-gateway check

Examples:
  mesh-gateway status
  mesh-gateway status --envoy
  kubectl mesh status --output json

Exit status: 0 all that could be read is as it should be, 1 a revision is not
translated, or an Envoy has rejected endpoints or differs from the objects, 2
wrong usage, or the cluster does not answer.
`;

/** Runs `mesh-gateway status`; returns the exit code. */
export async function runStatus(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      envoy: { type: 'boolean', default: false },
      namespace: { type: 'string', default: NAMESPACE },
      'envoy-gateway-namespace': { type: 'string', default: ENVOY_POD.namespace },
      output: { type: 'string', default: 'text' },
      color: { type: 'string', default: 'auto' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      ...CONFIGURATION,
    },
  });
  const { envoy, namespace, output, kubeconfig, context } = values;
  if (output !== 'text' && output !== 'json')
    throw new Error(`status: --output ${JSON.stringify(output)} is neither text nor json`);
  const look = lookOf('status', values.color, environment);
  const settings = { ...configuredBy('status', values), podNamespace: namespace };
  const status = await withCluster({ kubeconfig, context, environment }, async (transport, openPort) => {
    const read = await readStatus(transport, namespace, values['envoy-gateway-namespace']);
    return envoy ? await withEnvoys(statusOf(read), { ...read, settings }, openPort) : statusOf(read);
  });
  console.log(output === 'json' ? outputJson(jsonOf(status)) : formatStatus(status, look));
  const { gateways, rejections, differences = [] } = status;
  const isGood = [...rejections, ...differences].length === 0;
  return isGood && gateways.every(({ isTranslated }) => isTranslated) ? 0 : 1;
}

function jsonOf({ differences, unknown, ...status }: Status) {
  return {
    ...status,
    ...(differences && { differences: differences.map(problemJson) }),
    unknown: unknown.map(problemJson),
  };
}

/** A status with what each Envoy has. Those of Gateways without routes to MeshEndpoints are left out. */
async function withEnvoys(
  status: Status,
  { declarations, envoys, settings }: StatusInput & { readonly settings: TrafficSettings },
  openPort: OpenPort,
): Promise<Status> {
  const servingOf = servingIn(declarations);
  const served = ['', ...status.gateways.flatMap(({ gateway }) => servingOf(gateway))];
  const pods = (envoys.items ?? []).filter(pod => served.includes(gatewayOf(pod)));
  const { unknown, ...read } = envoysStatusOf({ declarations, settings }, await readEnvoys(pods, openPort));
  return { ...status, ...read, unknown: [...status.unknown, ...unknown] };
}

async function readStatus(
  transport: KubeTransport & TextTransport,
  namespace: string,
  envoyGatewayNamespace: string,
): Promise<StatusInput> {
  const own = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const [declarations, envoys, pods] = await Promise.all([
    readDeclarations(transport),
    listEnvoys(transport, envoyGatewayNamespace),
    readList(transport, own, labelled(SERVER_LABELS)),
  ]);
  const servers = (pods.items ?? []).map(async (pod): Promise<ReadServer> => {
    const name = textAt(pod, 'metadata', 'name');
    const path = `${own}/${encodeURIComponent(name)}`;
    const [metrics, log] = await Promise.all([
      readText(transport, `${path}:${PORTS.metrics}/proxy/metrics`),
      readText(transport, `${path}/log`, { container: 'extension-server', ...LAST_HOUR }),
    ]);
    return { pod: name, isReady: isReady(pod), metrics, log };
  });
  return { declarations, envoys, servers: await Promise.all(servers), why: pods.why };
}

const LAST_HOUR = { sinceSeconds: '3600', tailLines: '20000', limitBytes: String(16 * 1024 * 1024) };

/** A policy may keep the API server from the pod, and then its connection hangs. */
const TEXT_TIMEOUT_MS = 10_000;

async function readText(
  transport: TextTransport,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<ReadServer['log']> {
  try {
    const signal = AbortSignal.timeout(TEXT_TIMEOUT_MS);
    return { text: await transport.text({ verb: 'get', path, query, signal }) };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return {
      why: error.reason === 'Aborted' ? `no answer within ${TEXT_TIMEOUT_MS / 1000} s` : error.message,
    };
  }
}

/** Tables, and a line for each rejection and for what is not known; on a terminal with a summary last. */
function formatStatus(status: Status, look: Look): string {
  const { gateways, servers, rejections, envoys = [], differences = [], unknown } = status;
  const lineOf = (title: string, as: 'error' | 'note') => (text: string) =>
    fitting(`${painted(plainText(title), as, look)}${plainText(text)}`, 2, look).join('\n');
  const gatewayRows = gateways.map(({ gateway, revision, isTranslated, envoys, rejections: count }) => [
    ...[gateway, revision, isTranslated ? 'yes' : 'NO'],
    ...[envoys ? `${envoys.ready} of ${envoys.total}` : '?', shown(count)],
  ]);
  const serverRows = servers.map(each => [
    ...[each.pod, each.isReady ? 'yes' : 'NO', shown(each.translations), shown(each.failures)],
    ...[shown(each.streams), shown(each.acknowledged), shown(each.rejected)],
  ]);
  const envoyRows = envoys.map(each => {
    const sum = (of: 'used' | 'total') =>
      each.clusters.reduce((all, { endpoints }) => all + endpoints[of], 0);
    return [
      ...[each.pod, each.gateway, each.version, `${each.clusters.length} of ${each.expected}`],
      ...[`${sum('used')} of ${sum('total')}`, String(each.rejected)],
    ];
  });
  const texts = [
    differences.map(formatProblem).map(lineOf('DIFFERENT: ', 'error')),
    gateways.length === 0
      ? ['no Gateway has a route to MeshEndpoints, or MeshBindings cannot be read']
      : tableOf(['GATEWAY', 'REVISION', 'TRANSLATED', 'ENVOYS', 'REJECTED'], gatewayRows, look),
    envoyRows.length === 0
      ? []
      : tableOf(['ENVOY', 'GATEWAY', 'VERSION', 'CLUSTERS', 'ENDPOINTS IN USE', 'REJECTED'], envoyRows, look),
    serverRows.length === 0
      ? []
      : tableOf(
          ['EXTENSION SERVER', 'READY', 'TRANSLATIONS', 'FAILURES', 'STREAMS', 'ACKNOWLEDGED', 'REJECTED'],
          serverRows,
          look,
        ),
    rejections.map(({ time, gateway, clusters, count, error }) =>
      lineOf(
        `${time} `,
        'error',
      )(`Envoys of ${gateway} rejected endpoints (${count}), such as of ${clusters.join(', ')}: ${error}`),
    ),
    unknown.map(formatProblem).map(lineOf('not known: ', 'note')),
    look.columns === undefined ? [] : [summaryOf(status)],
  ];
  return texts
    .filter(lines => lines.length > 0)
    .map(lines => lines.join('\n'))
    .join('\n\n');
}

function summaryOf({ gateways, rejections, differences, unknown }: Status): string {
  const translated = gateways.filter(({ isTranslated }) => isTranslated).length;
  const different = differences ? `, ${differences.length} different` : '';
  return `${translated} of ${gateways.length} translated, ${rejections.length} rejected${different}, ${unknown.length} not known`;
}

function shown(count: number | undefined): string {
  return count === undefined ? '?' : String(count);
}

/** On a terminal that is too narrow for the table, what a row has is below its name. */
function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  look: Look,
): readonly string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map(row => (row[column] ?? '').length)));
  const lines = all.map(row =>
    plainText(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')).trimEnd(),
  );
  const { columns = Infinity } = look;
  if (lines.every(({ length }) => length <= columns)) return lines;
  return rows.flatMap(([name = '', ...cells]) => {
    const named = cells.map((cell, index) => `${(head[index + 1] ?? '').toLowerCase()} ${cell}`).join(', ');
    return [plainText(`${head[0]} ${name}`), ...fitting(plainText(`  ${named}`), 2, look)];
  });
}
