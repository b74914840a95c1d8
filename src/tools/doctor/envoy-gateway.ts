import { GROUP, kinds } from '../../api/generated/kinds.ts';
import type { Fields } from '../../api/json.ts';
import { COMPONENTS, extensionServerIn } from '../../api/names.ts';
import type { Resource } from '../../api/objects/resource.ts';
import { isMeshBackend } from '../../api/objects/references.ts';
import { quantityOf } from '../../api/quantity.ts';
import { hasReported } from '../../traffic/translation-report.ts';
import { readDocuments } from '../../api/yaml-documents.ts';
import { isAtLeast, versionIn } from './definitions.ts';
import {
  at,
  failed,
  hasLabels,
  listAt,
  nameOf,
  namedIn,
  notChecked,
  numberAt,
  ok,
  textAt,
  textsAt,
  warning,
} from './observed.ts';
import type { Line, Observed } from './observed.ts';
import { ENVOY_GATEWAY_LABELS } from './network-policies.ts';
import { containersOf, variableOf } from './workloads.ts';

/** The names that the chart of Envoy Gateway gives. */
export const ENVOY_GATEWAY = {
  deployment: 'envoy-gateway',
  configMap: 'envoy-gateway-config',
  key: 'envoy-gateway.yaml',
  serviceAccount: 'envoy-gateway',
} as const;

/** Envoy Gateway: its version, its hook, and whether it uses its present configuration. */
export function checkEnvoyGateway(observed: Observed): readonly Line[] {
  return [
    versionLine(observed),
    ...configLines(observed),
    restartLine(observed),
    ...translationLines(observed),
  ];
}

/** The oldest Envoy Gateway that accepts other kinds in backendRefs. */
const OLDEST = [1, 9] as const;

function versionLine({ envoyGateways, envoyGatewayNamespace: namespace }: Observed): Line {
  const check = 'envoy-gateway';
  if (!envoyGateways.items) return notChecked(check, envoyGateways.why);
  const deployment = namedIn(envoyGateways.items, ENVOY_GATEWAY.deployment);
  const what = `Deployment ${namespace}/${ENVOY_GATEWAY.deployment}`;
  if (!deployment) {
    const fix = 'install Envoy Gateway, or name its namespace: --envoy-gateway-namespace NAMESPACE';
    return failed(check, `${what} does not exist`, fix);
  }
  if (numberAt(deployment, 'status', 'availableReplicas') === 0) {
    const fix = `kubectl -n ${namespace} logs deployment/${ENVOY_GATEWAY.deployment}`;
    return failed(check, `no pod of ${what} is available`, fix);
  }
  const image = textAt(containersOf(deployment)[0], 'image');
  const version = versionIn(image.replace(/@.*$/, '').split(':').at(-1) ?? '');
  if (!version) return notChecked(check, `the image ${image} of ${what} has no version in its tag`);
  return isAtLeast(version, OLDEST)
    ? ok(check, `${what} runs ${image}`)
    : failed(
        check,
        `${what} runs ${image}, which is older than ${OLDEST.join('.')}`,
        `${HELM} --version v1.9.1`,
      );
}

const HELM =
  'helm upgrade eg "$ENVOY_GATEWAY_CHART" --namespace envoy-gateway-system --reuse-values --values manifests/envoy-gateway/values.yaml';

function fixIn(namespace: string): string {
  return `${HELM.replace('envoy-gateway-system', namespace)}\n${restartIn(namespace)}`;
}

function restartIn(namespace: string): string {
  return `kubectl -n ${namespace} rollout restart deployment/${ENVOY_GATEWAY.deployment}`;
}

/** Of the configuration nothing but names and numbers of the extension is shown. */
function configLines(observed: Observed): readonly Line[] {
  const { envoyGatewayConfig: config, envoyGatewayNamespace: namespace } = observed;
  const both = (line: (check: string) => Line) => ['hook', 'message-limit'].map(line);
  if (!config.items) return both(check => notChecked(check, config.why));
  const place = `ConfigMap ${namespace}/${ENVOY_GATEWAY.configMap}`;
  const [found] = config.items;
  if (!found) return both(check => notChecked(check, `${place} does not exist`));
  const { documents, faults } = readDocuments(textAt(found, 'data', ENVOY_GATEWAY.key));
  if (faults.length > 0) return both(check => failed(check, `${ENVOY_GATEWAY.key} of ${place} is not YAML`));
  const extensions = extensionsIn(documents[0]?.value);
  const extension = extensions.find(each => hasKind(each, 'backendResources', 'MeshEndpoints'));
  const fix = fixIn(namespace);
  if (!extension) {
    const text = `no extensionManager in ${place} has backendResources with kind MeshEndpoints`;
    return [failed('hook', text, fix), notChecked('message-limit', 'the hook is not registered')];
  }
  const problems = hookProblems(extension, observed);
  const hook =
    problems.length === 0
      ? [ok('hook', `Envoy Gateway calls ${addressOf(extension)} in each translation`)]
      : problems.map(problem => failed('hook', `${place}: ${problem}`, fix));
  const others = extensions.filter(each => each !== extension);
  return [
    ...hook,
    ...routesLine(extension, observed, fix),
    ...others.flatMap(each => absenceLine(each, observed)),
    limitLine(extension, observed),
  ];
}

/** Envoy Gateway waits for all of its extensions in each translation. */
function absenceLine(extension: Fields, { declarations }: Observed): readonly Line[] {
  const [host, port] = partsOf(addressOf(extension));
  const [service = '', namespace = ''] = host.split('.');
  const endpoints = declarations.objects.flatMap(({ resource }) =>
    resource?.kind === 'EndpointSlice' &&
    resource.service === service &&
    resource.metadata.namespace === namespace
      ? resource.endpoints
      : [],
  );
  const isRead = declarations.complete?.has('EndpointSlice') ?? true;
  if (!isRead || !/^[^.]+\.[^.]+\.svc(\.|$)/.test(host) || endpoints.some(({ isDraining }) => !isDraining))
    return [];
  const text = `no pod of Service ${namespace}/${service} is ready, where the extension ${textAt(extension, 'name')} listens on ${port}: Envoy Gateway translates nothing until one is, whatever its failOpen is`;
  return [failed('hook', text, `kubectl -n ${namespace} describe service ${service}`)];
}

/** Without routes, a Gateway without rules that may be divided lacks nothing. */
function routesLine(extension: Fields, { declarations }: Observed, fix: string): readonly Line[] {
  if (at(extension, 'hooks', 'xdsTranslator', 'translation', 'route', 'includeAll') === true) return [];
  const [check, field] = ['hook', 'hooks.xdsTranslator.translation.route.includeAll of extensionManager'];
  const rule = declarations.objects.flatMap(({ resource }) => divisibleRules(resource))[0];
  if (rule === undefined)
    return [warning(check, `${field} is not true: rules of several backends need it`, fix)];
  const lost =
    'so MeshEndpoints get no requests in rules of several backends of which one is away or has filters';
  return [failed(check, `${field} is not true, ${lost}, such as ${rule}`, fix)];
}

function divisibleRules(resource: Resource | undefined): readonly string[] {
  if (resource?.kind !== 'HTTPRoute' && resource?.kind !== 'GRPCRoute') return [];
  return resource.rules.flatMap(({ backendRefs }, index) => {
    const weighted = backendRefs.filter(({ weight }) => weight > 0);
    const mesh = weighted.filter(isMeshBackend);
    const isDivisible = mesh.length > 0 && (weighted.length > 1 || mesh.some(({ filters }) => filters));
    const { namespace = '', name } = resource.metadata;
    return isDivisible ? [`spec.rules[${index}] of ${resource.kind} ${namespace}/${name}`] : [];
  });
}

function extensionsIn(config: unknown): readonly Fields[] {
  const one = at(config, 'extensionManager');
  return [...listAt({ one: [one] }, 'one'), ...listAt(config, 'extensionManagers')];
}

function hasKind(extension: Fields, list: string, kind: string): boolean {
  return listAt(extension, list).some(each => each['group'] === GROUP && each['kind'] === kind);
}

function hookProblems(extension: Fields, observed: Observed): readonly string[] {
  const translator = at(extension, 'hooks', 'xdsTranslator');
  const problems: string[] = [];
  if (!textsAt(translator, 'post').includes('Translation'))
    problems.push('hooks.xdsTranslator.post of extensionManager lacks Translation');
  if (at(translator, 'translation', 'cluster', 'includeAll') !== true)
    problems.push('hooks.xdsTranslator.translation.cluster.includeAll of extensionManager is not true');
  if (!hasKind(extension, 'policyResources', 'MeshBinding'))
    problems.push('policyResources of extensionManager lacks kind MeshBinding');
  const expected = expectedAddress(observed);
  const found = addressOf(extension);
  if (!isSameAddress(found, expected, observed))
    problems.push(`service of extensionManager is ${found}, and the extension server listens on ${expected}`);
  return problems;
}

/** The address of the extension server, as it gives it to Envoys. */
export function expectedAddress(observed: Observed): string {
  return serverVariable(observed, 'EXTENSION_SERVER_ADDRESS') ?? extensionServerIn(observed.namespace);
}

function serverVariable({ deployments }: Observed, name: string): string | undefined {
  return variableOf(deployments, COMPONENTS.extensionServer, name);
}

function addressOf(extension: Fields): string {
  const service = at(extension, 'service');
  const host =
    textAt(service, 'fqdn', 'hostname') || textAt(service, 'ip', 'address') || textAt(service, 'host');
  const port =
    numberAt(service, 'fqdn', 'port') || numberAt(service, 'ip', 'port') || numberAt(service, 'port');
  return `${host}:${port}`;
}

/** A Service has several names, and an address. */
function isSameAddress(found: string, expected: string, { declarations, namespace }: Observed): boolean {
  const [host, port] = partsOf(found);
  const [expectedHost, expectedPort] = partsOf(expected);
  if (port !== expectedPort) return false;
  const names = [
    expectedHost,
    `${COMPONENTS.extensionServer}.${namespace}`,
    `${COMPONENTS.extensionServer}.${namespace}.svc`,
  ];
  const service = declarations.objects.find(
    ({ fields }) =>
      fields['kind'] === 'Service' && nameOf(fields) === `${namespace}/${COMPONENTS.extensionServer}`,
  );
  const addresses = textsAt(service?.fields, 'spec', 'clusterIPs');
  return [...names, ...addresses].includes(host.replace(/\.$/, ''));
}

function partsOf(address: string): readonly [string, string] {
  const colon = address.lastIndexOf(':');
  return [address.slice(0, colon), address.slice(colon + 1)];
}

/** Envoy Gateway's own default. */
const DEFAULT_LIMIT = '4M';

function limitLine(extension: Fields, observed: Observed): Line {
  const check = 'message-limit';
  const value = at(extension, 'maxMessageSize') ?? DEFAULT_LIMIT;
  const limit = typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';
  const wanted = serverVariable(observed, 'MAX_MESSAGE_SIZE');
  if (wanted === undefined)
    return notChecked(
      check,
      observed.deployments.why ?? 'MAX_MESSAGE_SIZE of the extension server is not known',
    );
  const [bytes, wantedBytes] = [quantityOf(limit), quantityOf(wanted)];
  if (bytes === undefined || wantedBytes === undefined)
    return notChecked(check, `${limit} or ${wanted} is not a size`);
  return bytes >= wantedBytes
    ? ok(check, `Envoy Gateway sends messages of up to ${limit}`)
    : failed(
        check,
        `maxMessageSize of extensionManager is ${limit}, and MAX_MESSAGE_SIZE of the extension server ${wanted}: larger translations fail`,
        fixIn(observed.envoyGatewayNamespace),
      );
}

/**
 * Its chart does not restart Envoy Gateway when its ConfigMap changes, and it looks for the CRDs of backendResources at its start
 * alone.
 */
function restartLine({
  definitions,
  envoyGatewayConfig,
  envoyGatewayPods,
  envoyGatewayNamespace: namespace,
}: Observed): Line {
  const check = 'restarted';
  const { why } = envoyGatewayConfig.items ? envoyGatewayPods : envoyGatewayConfig;
  if (why !== undefined) return notChecked(check, why);
  const [config] = envoyGatewayConfig.items ?? [];
  const pods = (envoyGatewayPods.items ?? []).filter(
    pod => hasLabels(pod, ENVOY_GATEWAY_LABELS) && Number.isFinite(startOf(pod)),
  );
  const [changed, served] = [changedAt(config), servedSince(definitions.items ?? [])];
  const [blind] = pods.filter(pod => served !== undefined && startOf(pod) <= served);
  if (blind) {
    const text = `pod ${nameOf(blind)} has started before CRD ${ENDPOINTS} was served, and sees no MeshEndpoints until it is restarted`;
    return failed(check, text, restartIn(namespace));
  }
  if (changed === undefined || pods.length === 0)
    return notChecked(check, 'the ConfigMap of Envoy Gateway has no time of its last change, or no pod runs');
  const old = pods.find(pod => startOf(pod) < changed);
  if (!old) return ok(check, 'Envoy Gateway has started after the last change of its configuration');
  const text = `pod ${nameOf(old)} has started before the last change of ConfigMap ${namespace}/${ENVOY_GATEWAY.configMap}`;
  return failed(check, text, restartIn(namespace));
}

const ENDPOINTS = `${kinds.MeshEndpoints.plural}.${GROUP}`;

/** When the API server began to serve MeshEndpoints, as far as is known; times in objects have no fractions of a second. */
function servedSince(definitions: readonly Fields[]): number | undefined {
  const definition = namedIn(definitions, ENDPOINTS);
  const established = listAt(definition, 'status', 'conditions').find(
    condition => textAt(condition, 'type') === 'Established',
  );
  const times = [
    textAt(definition, 'metadata', 'creationTimestamp'),
    textAt(established, 'lastTransitionTime'),
  ]
    .map(text => Date.parse(text))
    .filter(Number.isFinite);
  return times.length === 0 ? undefined : Math.max(...times);
}

/** When data was last written; labels may change without it. */
function changedAt(config: Fields | undefined): number | undefined {
  const times = listAt(config, 'metadata', 'managedFields')
    .filter(entry => at(entry, 'fieldsV1', 'f:data') !== undefined)
    .map(entry => Date.parse(textAt(entry, 'time')))
    .filter(Number.isFinite);
  return times.length === 0 ? undefined : Math.max(...times);
}

function startOf(pod: Fields): number {
  const starts = listAt(pod, 'status', 'containerStatuses').map(status =>
    Date.parse(textAt(status, 'state', 'running', 'startedAt')),
  );
  return Math.max(...starts.filter(Number.isFinite));
}

/** What Envoy Gateway reports in MeshBindings proves that it knows the extension. */
function translationLines({ declarations }: Observed): readonly Line[] {
  const check = 'translations';
  if (declarations.complete && !declarations.complete.has('MeshBinding'))
    return [notChecked(check, 'meshbindings cannot be read')];
  const bindings = declarations.objects.flatMap(({ resource }) =>
    resource?.kind === 'MeshBinding' ? [resource] : [],
  );
  if (bindings.length === 0) return [notChecked(check, 'no Gateway has a route to MeshEndpoints yet')];
  const late = bindings.filter(binding => {
    const { namespace = '', name } = binding.metadata;
    const gateway = { kind: 'Gateway', namespace, name: binding.spec.targetRefs[0]?.name ?? name } as const;
    return !hasReported(gateway, binding);
  });
  if (late.length === 0)
    return [
      ok(check, `Envoy Gateway has translated the present revision of each Gateway (${bindings.length})`),
    ];
  return late.map(({ metadata: { namespace = '', name } }) =>
    failed(
      check,
      `Envoy Gateway has not reported in MeshBinding ${namespace}/${name} that it has translated the present revision: see hook, restarted and port-5005`,
    ),
  );
}
