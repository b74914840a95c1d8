import { isAddressOrRange, isHostOrRange } from '../src/api/ip.ts';
import { quantityOf } from '../src/api/quantity.ts';
import { formatFault } from '../src/api/validation/fault.ts';
import { validateWith } from '../src/api/validation/validate.ts';
import { fieldsBeyond } from '../src/api/validation/unknown-fields.ts';
import type { UnknownField } from '../src/api/validation/unknown-fields.ts';
import type { GeneratedValidator } from '../src/api/validation/validator.ts';
import { metadataLabel, repeatedLabelOf } from '../src/telemetry/endpoint-metrics.ts';
import { readDocuments } from '../src/api/yaml-documents.ts';
import { outlineInstallation as outline } from './generated/outline.ts';
import { repeatedVariables } from './environment.ts';
import { evaluate, rules } from './generated/rules.ts';
import { shapeInstallation as shape } from './generated/shape.ts';
import { structureInstallation as structure } from './generated/structure.ts';
import type { Installation } from './generated/types.ts';
import { excessiveVariables } from './mesh-pods.ts';

const validator: GeneratedValidator = { shape, structure, evaluate, rules, outline };

/** A configuration with its defaults, or each thing that is wrong with it on a line of its own. */
export type ReadConfiguration =
  | { readonly installation: Installation; readonly faults?: undefined }
  | { readonly faults: readonly string[] };

/** Reads the text of a configuration: YAML or JSON, one document at most. */
export function readConfiguration(text: string): ReadConfiguration {
  const { documents, faults } = readDocuments(text);
  if (faults.length > 0) return { faults: faults.map(({ line, message }) => `line ${line}: ${message}`) };
  if (documents.length > 1) return { faults: ['holds more than one YAML document: keep one'] };
  return validateConfiguration(documents[0]?.value ?? {});
}

/** Validates a configuration. Unlike the API server it refuses unknown fields, which would have no effect. */
export function validateConfiguration(value: unknown): ReadConfiguration {
  const unknown = fieldsBeyond(outline, value).map(unknownFault);
  const verdict = validateWith<Installation>(validator, value);
  const wrong = verdict.valid
    ? CHECKS.flatMap(faultsOf => faultsOf(verdict.object))
    : verdict.faults.map(formatFault);
  const faults = [...unknown, ...wrong];
  return verdict.valid && faults.length === 0 ? { installation: verdict.object } : { faults };
}

/** Refuses a field that would have no effect. */
export function unknownFault({ path, meant }: UnknownField): string {
  const message = `there is no such field${meant === undefined ? '' : `; did you mean ${meant}?`}`;
  return formatFault({ path, steps: [], message });
}

/**
 * Refuses a namespace that others use: the installation makes it enforce the restricted level of Pod Security, which other
 * pods may violate, and deletes it when it is removed.
 */
function sharedNamespaces({ namespace, envoyGateway, monitoring }: Installation): readonly string[] {
  const others: Readonly<Record<string, readonly string[]>> = {
    'envoyGateway.namespace': [envoyGateway.namespace],
    'envoyGateway.proxyNamespaces': envoyGateway.proxyNamespaces ?? [],
    'monitoring.namespace': [monitoring.namespace],
  };
  const advice =
    'name one that mesh-gateway alone uses: it enforces Pod Security, and is deleted with the installation';
  if (namespace === 'default' || namespace.startsWith('kube-'))
    return [`namespace: ${namespace} is a namespace of Kubernetes itself; ${advice}`];
  return Object.entries(others)
    .filter(([, names]) => names.includes(namespace))
    .map(([field]) => `namespace: ${namespace} is that of ${field} too; ${advice}`);
}

/** The processes would refuse them, and not start. */
function malformedAddresses({ externalTargets, refusedAddresses }: Installation): readonly string[] {
  const allowed = (externalTargets.allow ?? []).filter(entry => !isHostOrRange(entry));
  const refused = (refusedAddresses ?? []).filter(entry => !isAddressOrRange(entry));
  return [
    ...allowed.map(
      entry => `externalTargets.allow: ${entry} is not a host name, IP address or CIDR, such as 10.1.0.0/16`,
    ),
    ...refused.map(entry => `refusedAddresses: ${entry} is not an IP address or CIDR, such as 100.64.0.0/16`),
  ];
}

/** The operator would not start: each metric has a label once. */
function repeatedLabels({ operator }: Installation): readonly string[] {
  const repeated = repeatedLabelOf(operator.endpointMetricLabels ?? []);
  if (repeated === undefined) return [];
  return [
    `operator.endpointMetricLabels: ${repeated} would be the label ${metadataLabel(repeated)} of an earlier key too: remove one`,
  ];
}

/** The requests that are above their limits: the API server would accept the Deployment and refuse its pods. */
function excessiveRequests(installation: Installation): readonly string[] {
  return (['operator', 'extensionServer', 'meshPods'] as const).flatMap(process => {
    const { requests, limits } = installation[process].resources;
    return (['cpu', 'memory'] as const)
      .filter(resource => (quantityOf(requests[resource]) ?? NaN) > (quantityOf(limits[resource]) ?? NaN))
      .map(
        resource =>
          `${process}.resources.requests.${resource}: ${requests[resource]} is more than the limit of ${limits[resource]}`,
      );
  });
}

/** What the schema cannot express. */
const CHECKS = [
  excessiveRequests,
  excessiveVariables,
  sharedNamespaces,
  malformedAddresses,
  repeatedLabels,
  repeatedVariables,
] as const;
