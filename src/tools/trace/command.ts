import { parseArgs } from 'node:util';
import { isRoute } from '../check/backend-refs.ts';
import { readDeclarations, withCluster } from '../check/cluster.ts';
import type { ClusterOptions, OpenPort } from '../check/cluster.ts';
import type { KubeTransport, TextTransport } from '../../kubernetes/transport/transport.ts';
import { Catalog, objectOf, readObjects } from '../check/objects.ts';
import type { Declarations } from '../check/objects.ts';
import { together } from '../check/reach.ts';
import type { Reach } from '../check/reach.ts';
import { trackingOf } from '../check/traffic.ts';
import type { TrafficSettings } from '../check/traffic.ts';
import { ENVOY_POD, MESH_POD, NAMESPACE } from '../../api/names.ts';
import { formatProblem } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { labelled, listEnvoys, readList } from '../doctor/cluster.ts';
import { readFronts } from '../doctor/fronts.ts';
import { CONFIGURATION, CONFIGURATION_HELP, configuredBy } from '../configuration.ts';
import { outputJson, problemJson } from '../json.ts';
import { plainText } from '../plain-text.ts';
import { COLOR_HELP, fitting, lookOf, painted } from '../terminal.ts';
import type { Look } from '../terminal.ts';
import { readFiles } from '../sources.ts';
import { withEnvoys } from './envoys.ts';
import { parseRequest } from './request.ts';
import type { TracedRequest } from './request.ts';
import { reachesOf, routeJson, routeText, routeTracer, strayJson, straysIn, strayText } from './routes.ts';
import { destinationOf, parseDestination, send } from './send.ts';
import type { Destination } from './send.ts';
import type { Step } from './step.ts';
import { trace } from './trace.ts';
import type { TracedWay, Way } from './trace.ts';

/** What `mesh-gateway help trace` prints. */
export const TRACE_HELP = `mesh-gateway trace [options] URL|HOST:PORT|--all

Follows a request from the listener of a Gateway through the rule of a route to
the endpoints, mesh pods and devices that would get it, and prints the first
step that is broken, with the fix. It decides by the objects of the cluster, or
of files, and sends nothing without --send.

  URL           such as http://web.example.com/path, with the port of the
                listener
  HOST:PORT     a connection of TCP, TLS or UDP; HOST is the name that a TLS
                client asks for
  --all         instead of one request, all routes with MeshEndpoints among
                their backends: for each rule the cluster and the endpoints that
                Envoy gets and how it reaches them, the policies, and what is
                not used and why
  --from        only through this Gateway, as NAMESPACE/NAME
  --method      of the request (default: GET)
  --header      of the request, as "NAME: VALUE"; may be repeated
  --send        send the request, too, where no step is broken, and print the
                answer after the steps: to the address in the status of the
                Gateway and the port of the listener, over HTTP or HTTPS. It
                needs --from where several Gateways are left, with --header, and
                with a method other than GET
  --address     send it to this HOST:PORT instead
  --envoy       also show what each Envoy of the Gateway has for the rule, and
                first of all where it differs: by a port-forward to its admin
                interface, with your own rights
  --envoy-gateway-namespace
                of Envoy Gateway (default: ${ENVOY_POD.namespace})
  --namespace   of the installation (default: ${NAMESPACE}), whose mesh pods
                relay UDP; --envoy asks them what their proxy has refused
  --file        a file or folder with the objects, or - for standard input,
                instead of a cluster; may be repeated
${CONFIGURATION_HELP}
  --output      text, which is the default, or json
${COLOR_HELP}
  --kubeconfig, --context
                the cluster, as in mesh-gateway check

Examples:
  mesh-gateway trace http://web.example.com/
  mesh-gateway trace https://web.example.com/ --header "X-Version: 2"
  mesh-gateway trace http://web.example.com/ --send --address 127.0.0.1:8080
  mesh-gateway trace http://web.example.com/ --envoy
  mesh-gateway trace db.example.com:5432 --file my-objects
  kustomize build | mesh-gateway trace --all --file -

Exit status: 0 all such requests reach an endpoint, or Envoy answers them, as by
a redirect, 3 some do, 1 none does, the one that was sent gets no answer or one
of 500 and above, or an Envoy differs from the objects or is refused by mesh
pods, 2 wrong usage, or what decides it could not be read or is in no file.
`;

/** Runs `mesh-gateway trace`; returns the exit code. */
export async function runTrace(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  if (values.output !== 'text' && values.output !== 'json')
    throw new Error(`trace: --output ${JSON.stringify(values.output)} is neither text nor json`);
  const { kubeconfig, context } = values;
  const ofCluster = (['kubeconfig', 'context'] as const).find(name => values[name] !== undefined);
  if (ofCluster && values.file.length > 0)
    throw new Error(`trace: --${ofCluster} is about a cluster: leave it out, or --file`);
  const from: TraceSource = {
    files: values.file,
    cluster: { kubeconfig, context, environment },
    settings: { ...configuredBy('trace', values), podNamespace: values.namespace },
  };
  if (values.all) {
    const useless = (['from', 'send', 'address', 'envoy', 'method', 'header'] as const).find(isGiven);
    if (useless) throw new Error(`trace: --${useless} is about one request: leave it out, or --all`);
    if (positionals.length > 0)
      throw new Error(`trace: --all is about all routes: leave out --all, or the URL; ${FILES}`);
    return await traceAll(from, values.output, lookOf('trace', values.color, environment));
  }
  return await traceOne(positionals, values, from);

  function isGiven(name: 'from' | 'send' | 'address' | 'envoy' | 'method' | 'header'): boolean {
    const value = values[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  }
}

const FILES = 'files and folders follow --file';

const OPTIONS = {
  all: { type: 'boolean', default: false },
  from: { type: 'string' },
  send: { type: 'boolean', default: false },
  address: { type: 'string' },
  envoy: { type: 'boolean', default: false },
  'envoy-gateway-namespace': { type: 'string', default: ENVOY_POD.namespace },
  namespace: { type: 'string', default: NAMESPACE },
  method: { type: 'string' },
  header: { type: 'string', multiple: true, default: [] as string[] },
  file: { type: 'string', multiple: true, default: [] as string[] },
  output: { type: 'string', default: 'text' },
  color: { type: 'string', default: 'auto' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  ...CONFIGURATION,
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

/** Where the objects are read, and how the processes are configured. */
type TraceSource = {
  readonly files: readonly string[];
  readonly cluster: Pick<ClusterOptions, 'kubeconfig' | 'context' | 'environment'>;
  readonly settings: TrafficSettings;
};

async function declarationsOf({ files, cluster }: TraceSource): Promise<Declarations> {
  if (files.length > 0) return readObjects(await readFiles(files));
  return await withCluster(cluster, transport => readDeclarations(transport), WITH_FILES);
}

/** Prints all routes. What is left out may be one. */
async function traceAll(from: TraceSource, output: 'text' | 'json', look: Look): Promise<number> {
  const declarations = await declarationsOf(from);
  const isWhole = printLeftOut(declarations);
  const catalog = new Catalog(declarations);
  const routes = routeTracer(trackingOf(catalog), from.settings, catalog)();
  const strays = straysIn(declarations.objects.filter(isRoute), catalog);
  const reach = together([
    ...routes.flatMap(reachesOf),
    ...strays.map(() => 'none' as const),
    ...(isWhole ? [] : ['unknown' as const]),
  ]);
  const count = routes.length + strays.length;
  const text = [
    ...routes.map(route => routeText(route, look)),
    ...strays.map(stray => strayText(stray, look)),
    ...summaryOn(look, `${count} route${count === 1 ? '' : 's'}: ${REQUESTS[reach]}`),
  ].join('\n\n');
  const none = 'no route has MeshEndpoints among its backends';
  const json = () => outputJson({ routes: [...routes.map(routeJson), ...strays.map(strayJson)] });
  console.log(output === 'json' ? json() : count === 0 ? none : text);
  return EXIT_CODES[reach];
}

async function traceOne(
  [target, second]: readonly string[],
  values: Values,
  from: TraceSource,
): Promise<number> {
  if (target === undefined) throw new Error('trace: name one URL or HOST:PORT, or give --all');
  if (second !== undefined) throw new Error(`trace: only one URL or HOST:PORT is traced; ${FILES}`);
  const { method = 'GET', header: headers } = values;
  const look = lookOf('trace', values.color, from.cluster.environment);
  const request = parseRequest(target, { method, headers });
  if (values.send && request.over === 'connection')
    throw new Error('trace: --send is for URLs: only requests over HTTP and HTTPS can be sent');
  if (values.send && values.from === undefined && (headers.length > 0 || request.method !== 'GET'))
    throw new Error(
      `trace: --send with ${headers.length > 0 ? '--header' : '--method'} needs --from: ${FROM}`,
    );
  if (values.address !== undefined && !values.send) throw new Error('trace: --address needs --send');
  const address = values.address === undefined ? undefined : parseDestination(values.address);
  if (values.envoy && from.files.length > 0)
    throw new Error('trace: --envoy reads Envoys of a cluster: leave out --file');
  const { declarations, traced } = await traceIn(from, request, values);
  printLeftOut(declarations);
  const ways = values.send ? await withAnswers(traced, request, declarations, address) : traced;
  console.log(values.output === 'json' ? outputJson({ ways: ways.map(wayJson) }) : textOf(ways, look));
  return verdictOf(ways).exit;
}

function wayJson({ gateway, action, reaches, steps }: Way) {
  const ofStep = ({ problem, ...step }: Step) => ({
    ...step,
    ...(problem && { problem: problemJson(problem) }),
  });
  return { gateway, hasRule: action !== undefined, reaches, steps: steps.map(ofStep) };
}

const EXIT_CODES: Readonly<Record<Reach, number>> = { all: 0, some: 3, none: 1, unknown: 2 };

/** For a summary. */
const REQUESTS: Readonly<Record<Reach, string>> = {
  all: 'all requests reach an endpoint',
  some: 'some requests reach an endpoint',
  none: 'no request reaches an endpoint',
  unknown: 'it is not known whether requests reach an endpoint',
};

const ANSWERED = {
  redirect: 'all requests are redirected',
  answer: 'all requests are answered by Envoy itself',
} as const;

/** A summary, which is the last line on a terminal. */
function summaryOn({ columns }: Look, text: string): readonly string[] {
  return columns === undefined ? [] : [text];
}

/** What Envoys have, and an answer, count more than what the objects lead to. */
function verdictOf(ways: readonly Way[]): { readonly exit: number; readonly text: string } {
  const steps = ways.flatMap(way => way.steps);
  const isDifferent = steps.some(({ name, is }) => name === 'envoy' && is === 'broken');
  const answers = ways.flatMap(({ answer }) => answer ?? []);
  const isFailed = answers.some(({ is }) => is === 'broken') && !answers.some(({ is }) => is === 'ok');
  const isUnsent = answers.length > 0 && answers.every(({ is }) => is === 'unknown');
  const ruled = ways.filter(({ action }) => action !== undefined);
  const reach = together((ruled.length > 0 ? ruled : ways).map(({ reaches }) => reaches));
  const [action, ...others] = new Set(ruled.map(each => each.action));
  const isAnswered = reach === 'all' && action !== undefined && action !== 'forward' && others.length === 0;
  const text = [
    isAnswered ? ANSWERED[action] : REQUESTS[reach],
    ...(isDifferent ? ['but an Envoy differs'] : []),
    ...(isFailed ? ['but the one that was sent failed'] : []),
    ...(isUnsent ? ['but none was sent'] : []),
  ].join(', ');
  // A step that is broken, before which nothing is sent, has decided already.
  const isOtherwise = isDifferent || isFailed || (isUnsent && reach === 'all');
  return { exit: isOtherwise ? 1 : EXIT_CODES[reach], text };
}

/** Of what is left out, a request may depend on everything: a route that is not valid seems not to exist. */
const LEFT_OUT: readonly Reason[] = [
  'NotRead',
  'Syntax',
  'Invalid',
  'UnknownKind',
  'NotRendered',
  'Repeated',
];

/** Returns whether nothing is left out. */
function printLeftOut({ findings }: Declarations): boolean {
  // What matters less than usual leaves nothing out.
  const leftOut = findings.filter(
    ({ reason, mattersAs }) => LEFT_OUT.includes(reason) && mattersAs === undefined,
  );
  const look = lookOf('trace', 'never', {}, process.stderr);
  for (const finding of leftOut) {
    const message = formatProblem(finding);
    const where = finding.file === undefined ? (objectOf(finding) ?? '') : `${finding.file}:${finding.line}`;
    const line = plainText(where === '' ? message : `${where}: ${message}`);
    for (const each of fitting(line, 4, look)) console.error(each);
  }
  return leftOut.length === 0;
}

type Traced = { readonly declarations: Declarations; readonly traced: readonly TracedWay[] };

/** Traces in files or a cluster; what Envoys have is read over the same connection. */
async function traceIn(from: TraceSource, request: TracedRequest, options: Values): Promise<Traced> {
  const { cluster, settings } = from;
  const tracedIn = (declarations: Declarations) => trace(declarations, request, options.from, settings);
  if (!options.envoy) {
    const declarations = await declarationsOf(from);
    return { declarations, traced: tracedIn(declarations) };
  }
  const traceEnvoys = async (transport: KubeTransport & TextTransport, openPort: OpenPort) => {
    const declarations = await readDeclarations(transport);
    const traced = tracedIn(declarations);
    const envoys = await listEnvoys(transport, options['envoy-gateway-namespace']);
    const path = `/api/v1/namespaces/${encodeURIComponent(options.namespace)}/pods`;
    const { items = [], why } = await readList(transport, path, labelled(MESH_POD.labels));
    const fronts = { read: await readFronts(transport, items), why };
    return {
      declarations,
      traced: await withEnvoys(traced, { declarations, settings }, envoys, fronts, openPort),
    };
  };
  return await withCluster(cluster, traceEnvoys, WITH_FILES);
}

/** How to trace without a cluster. */
const WITH_FILES = 'or give files: mesh-gateway trace --file FOLDER';

/** Whoever may write a Gateway can have one with the same host and port. */
const FROM = 'name the Gateway that may get the request, as NAMESPACE/NAME';

/** With the answer of the one Gateway through which the request gets, after the steps that lead to it. */
async function withAnswers(
  ways: readonly Way[],
  request: TracedRequest,
  declarations: Declarations,
  address: Destination | undefined,
): Promise<readonly Way[]> {
  const open = ways.filter(({ steps }) => steps.every(({ is }) => is !== 'broken'));
  if (open.length > 1) {
    const names = open.map(({ gateway }) => gateway).join(', ');
    throw new Error(`trace: --send needs --from: ${FROM}, one of ${names}`);
  }
  return await Promise.all(
    ways.map(async way => {
      const to = address ?? destinationOf(way.gateway, request, declarations);
      const answerOf = async () => {
        if (!open.includes(way)) return NOT_SENT;
        if (!to) return NO_ADDRESS;
        const place = `${to.host}:${to.port}`;
        console.error(plainText(`sending ${request.method} to ${place} for Gateway ${way.gateway}`));
        return await send(request, to);
      };
      const answer = await answerOf();
      return { ...way, steps: [...way.steps, answer], answer };
    }),
  );
}

const NOT_SENT: Step = {
  is: 'unknown',
  name: 'answer',
  text: 'nothing was sent: a step before is broken',
};

const NO_ADDRESS: Step = {
  is: 'unknown',
  name: 'answer',
  text: 'nothing was sent: no Gateway with an address in its status is for the request: give one by --address HOST:PORT',
};

const MARKS = { ok: 'ok', broken: 'BROKEN', unknown: '?' } as const;
const WIDTH = 8;

function textOf(ways: readonly Way[], look: Look): string {
  const texts = ways.map(({ steps }) => steps.flatMap(step => linesOf(step, look)).join('\n'));
  return [...texts, ...summaryOn(look, verdictOf(ways).text)].join('\n\n');
}

/** On a terminal the fix is on a line of its own. */
function linesOf({ is, name, text, problem }: Step, look: Look) {
  const { fix, example } = problem ?? {};
  const head = `${painted(MARKS[is].padEnd(WIDTH), STYLES[is], look)}${name.padEnd(WIDTH + 2)}`;
  const indent = 2 * WIDTH + 2;
  const isApart = look.columns !== undefined;
  const [first = '', ...rest] = plainText(isApart || fix === undefined ? text : `${text}: ${fix}`).split(
    '\n',
  );
  return [
    ...fitting(`${head}${first}`, indent, look),
    ...rest,
    ...(isApart && fix !== undefined
      ? fitting(`${' '.repeat(indent)}${painted('fix:', 'fix', look)} ${plainText(fix)}`, indent + 5, look)
      : []),
    ...(example === undefined ? [] : ['', ...plainText(example).split('\n')]),
  ];
}

const STYLES = { ok: 'ok', broken: 'error', unknown: 'note' } as const;
