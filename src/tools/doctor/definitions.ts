import { GROUP, kinds, VERSION } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import { validators } from '../../api/generated/validators.ts';
import type { Fields } from '../../api/json.ts';
import { isRecord } from '../../api/json.ts';
import type { Outline } from '../../api/validation/validator.ts';
import { at, failed, listAt, namedIn, notChecked, ok, textAt } from './observed.ts';
import type { Line, Observed } from './observed.ts';

/** The names of the CRDs of mesh-gateway. */
export const OWN_DEFINITIONS: readonly string[] = Object.values(kinds).map(
  ({ plural }) => `${plural}.${GROUP}`,
);

/** The CRD with the version of Gateway API. */
export const HTTP_ROUTES = 'httproutes.gateway.networking.k8s.io';

const FIX = 'kubectl apply --server-side --force-conflicts -f manifests/crds.yaml';

/** Whether the CRDs are those of this version of mesh-gateway, and Gateway API is recent enough. */
export function checkDefinitions({ definitions }: Pick<Observed, 'definitions'>): readonly Line[] {
  const { items } = definitions;
  if (!items) return ['crds', 'gateway-api'].map(check => notChecked(check, definitions.why));
  const problems = (Object.keys(kinds) as readonly KindName[]).flatMap(kind =>
    definitionProblem(kind, items),
  );
  const own =
    problems.length === 0
      ? [ok('crds', `${OWN_DEFINITIONS.length} CRDs of ${GROUP}/${VERSION} have all fields of this version`)]
      : problems.map(problem => failed('crds', problem, FIX));
  return [...own, gatewayApiLine(items)];
}

const MAX_LISTED = 3;

function definitionProblem(kind: KindName, items: readonly Fields[]): readonly string[] {
  const name = `${kinds[kind].plural}.${GROUP}`;
  const definition = namedIn(items, name);
  if (!definition) return [`CRD ${name} does not exist`];
  const established = listAt(definition, 'status', 'conditions').find(({ type }) => type === 'Established');
  if (established?.['status'] === 'False')
    return [`CRD ${name} is not served: ${textAt(established, 'message')}`];
  const version = listAt(definition, 'spec', 'versions').find(
    each => each['name'] === VERSION && each['served'] === true,
  );
  if (!version) return [`CRD ${name} does not serve ${VERSION}`];
  const { metadata: _, ...fields } = validators[kind].outline.fields ?? {};
  const schema = at(version, 'schema', 'openAPIV3Schema');
  const missing = missingFields({ is: 'object', fields }, schema, '');
  if (missing.length === 0) return [];
  const more = missing.length > MAX_LISTED ? ` and ${missing.length - MAX_LISTED} more` : '';
  return [
    `CRD ${name} is of another version: the API server drops ${missing.slice(0, MAX_LISTED).join(', ')}${more}`,
  ];
}

/** The paths of fields that a schema lacks, of each branch the first. */
function missingFields(outline: Outline, schema: unknown, path: string): readonly string[] {
  if (outline.items) return missingFields(outline.items, at(schema, 'items'), `${path}[]`);
  if (at(schema, 'x-kubernetes-preserve-unknown-fields') === true) return [];
  return Object.entries(outline.fields ?? {}).flatMap(([name, inner]) => {
    const found = at(schema, 'properties', name);
    const place = path === '' ? name : `${path}.${name}`;
    return isRecord(found) ? missingFields(inner, found, place) : [place];
  });
}

function gatewayApiLine(items: readonly Fields[]): Line {
  const check = 'gateway-api';
  const definition = namedIn(items, HTTP_ROUTES);
  if (!definition) {
    const fix = 'install the CRDs of Gateway API, which are in the chart of Envoy Gateway';
    return failed(check, `CRD ${HTTP_ROUTES} does not exist`, fix);
  }
  const version = textAt(definition, 'metadata', 'annotations', 'gateway.networking.k8s.io/bundle-version');
  return ok(check, `Gateway API ${version === '' ? 'of an unknown version' : version} is installed`);
}

/** The oldest Kubernetes that works. */
const KUBERNETES = [1, 31] as const;

/** Whether the API server is recent enough. */
export function checkKubernetes({ kubernetes }: Pick<Observed, 'kubernetes'>): Line {
  const check = 'kubernetes';
  const text = textAt(kubernetes.items?.[0], 'gitVersion');
  const version = versionIn(text);
  if (!version) return notChecked(check, kubernetes.why ?? 'the API server reports no version');
  return isAtLeast(version, KUBERNETES)
    ? ok(check, `Kubernetes ${text}`)
    : failed(check, `Kubernetes ${text} is older than ${KUBERNETES.join('.')}`, 'upgrade the cluster');
}

/** The first two numbers of a version, such as v1.9.1. */
export function versionIn(text: string): readonly [number, number] | undefined {
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?![^.+-])/.exec(text) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

/** Whether a version is another one or newer. */
export function isAtLeast(
  [major, minor]: readonly [number, number],
  [least, leastMinor]: readonly [number, number],
): boolean {
  return major > least || (major === least && minor >= leastMinor);
}
