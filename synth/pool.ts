import { familyOf } from '../src/api/ip.ts';
import type { Kinds } from '../src/api/generated/types.ts';
import { isRecord } from '../src/api/json.ts';
import { defaultControlURL, isLabel, MESH_POD } from '../src/api/names.ts';
import { addressText } from '../src/api/socket-address.ts';
import { formatFault } from '../src/api/validation/fault.ts';
import { unknownFields } from '../src/api/validation/unknown-fields.ts';
import { validate } from '../src/api/validation/validate.ts';
import { readDocuments } from '../src/api/yaml-documents.ts';
import { poolObjects } from '../src/controllers/mesh-tailnet/pool/objects.ts';
import { addUserPoolPolicy } from './charts/network-policies.ts';
import { unknownFault } from './config.ts';
import type { Installation } from './generated/types.ts';
import { objectsOf } from './install.ts';
import { poolDefaults } from './mesh-pods.ts';

/** What a pool that a user runs is made from. */
export type UserPoolOptions = {
  readonly installation: Installation;
  /** The text of a MeshTailnet. */
  readonly tailnet: string;
  /** The namespace of the pods. */
  readonly namespace: string;
  /** The IP address of its Service; undefined until the cluster has chosen one. */
  readonly address: string | undefined;
};

/** The objects of a pool, or each thing that is wrong with its options on a line of its own. */
export type UserPool =
  | { readonly objects: readonly object[]; readonly faults?: undefined }
  | { readonly faults: readonly string[] };

/**
 * The objects of a pool that a user runs, as the operator makes those of one that it runs, and the MeshTailnet that uses it by the
 * address of its Service.
 * The pods have no front, whose lists the operator writes for its own pools alone, so that their NetworkPolicy is all that keeps
 * others away.
 */
export function userPool(options: UserPoolOptions): UserPool {
  const read = readTailnet(options.tailnet);
  if (read.faults) return read;
  const { tailnet, written } = read;
  const faults = [...faultsOfPlace(options), ...faultsOfTailnet(options, tailnet)];
  if (faults.length > 0) return { faults };
  const { installation, namespace, address } = options;
  const { supporting, statefulSet } = poolObjects({
    tailnet,
    installation: undefined,
    namespace,
    defaults: defaultsOf(installation),
    controlURL: controlURLOf(options, tailnet) ?? '',
    ca: tailnet.spec.controlCA?.ca,
    relayImage: undefined,
    replicas: tailnet.spec.pool.replicas,
    ordinals: tailnet.spec.pool.replicas,
  });
  const { annotations: _, ...metadata } = statefulSet.metadata;
  // No operator replaces the pods of a changed template.
  const spec = { ...statefulSet.spec, updateStrategy: { type: 'RollingUpdate' } };
  const { selector } = statefulSet.spec;
  const policies = objectsOf({ installation, version: '' }, (chart, install) => {
    if (installation.networkPolicies.enabled) addUserPoolPolicy(chart, install, { ...metadata, selector });
  });
  const services = supporting.map(object =>
    object.kind === 'Service' && object.metadata.name === metadata.name
      ? { ...object, spec: { ...(address === undefined ? {} : { clusterIP: address }), ...object.spec } }
      : object,
  );
  const objects = [...services, ...policies, { ...statefulSet, metadata, spec }];
  return {
    objects: [
      ...objects.map(object => ({ ...object, metadata: { ...object.metadata, namespace } })),
      ...(address === undefined ? [] : [externalTailnet(written, address)]),
    ],
  };
}

function defaultsOf(installation: Installation) {
  const { resources, ...others } = poolDefaults(installation);
  const { requests, limits } = resources;
  return {
    ...others,
    resources: { requests: { ...requests }, limits: { ...limits } },
    imagePullSecrets: installation.image.pullSecrets ?? [],
  };
}

type ReadTailnet =
  | {
      readonly tailnet: Kinds['MeshTailnet'];
      readonly written: Readonly<Record<string, unknown>>;
      readonly faults?: undefined;
    }
  | { readonly faults: readonly string[] };

function readTailnet(text: string): ReadTailnet {
  const { documents, faults } = readDocuments(text);
  if (faults.length > 0) return { faults: faults.map(({ line, message }) => `line ${line}: ${message}`) };
  const [written, ...others] = documents.map(({ value }) => value);
  if (others.length > 0) return { faults: ['holds more than one YAML document: keep the MeshTailnet alone'] };
  if (!isRecord(written) || written['kind'] !== 'MeshTailnet') return { faults: ['is not a MeshTailnet'] };
  const verdict = validate('MeshTailnet', written);
  const wrong = [
    ...unknownFields('MeshTailnet', written).map(unknownFault),
    ...(verdict.valid ? [] : verdict.faults.map(formatFault)),
  ];
  return verdict.valid && wrong.length === 0 ? { tailnet: verdict.object, written } : { faults: wrong };
}

function faultsOfPlace({ installation, namespace, address }: UserPoolOptions): readonly string[] {
  return [
    ...(address === undefined || familyOf(address)
      ? []
      : [`--address: ${JSON.stringify(address)} is not an IP address`]),
    ...(isLabel(namespace)
      ? []
      : [`--namespace: ${JSON.stringify(namespace)} is not the name of a namespace`]),
    ...(namespace === installation.namespace
      ? [
          `--namespace: ${namespace} is that of the operator, which takes mesh pods there for its own; name another`,
        ]
      : []),
  ];
}

function faultsOfTailnet(options: UserPoolOptions, tailnet: Kinds['MeshTailnet']): readonly string[] {
  const { controlCA, loginServer } = tailnet.spec;
  const isServerKnown = loginServer !== undefined || controlURLOf(options, tailnet) !== undefined;
  return [
    ...(isServerKnown
      ? []
      : [
          'spec.loginServer: is missing; set it to the control server that the pods join, since neither spec.controlURL nor controlURL of the configuration is set',
        ]),
    ...(controlCA?.configMapRef
      ? [
          'spec.controlCA.configMapRef: is in the namespace of the operator; write the certificates to spec.controlCA.ca',
        ]
      : []),
  ];
}

function controlURLOf({ installation }: UserPoolOptions, { spec }: Kinds['MeshTailnet']): string | undefined {
  return spec.controlURL ?? installation.controlURL ?? defaultControlURL(spec.tailnet) ?? spec.loginServer;
}

/** As it is written, but for its pool. */
function externalTailnet(written: Readonly<Record<string, unknown>>, address: string): object {
  const spec = isRecord(written['spec']) ? written['spec'] : {};
  const proxy = addressText({ meshIP: address, port: MESH_POD.ports.proxy });
  return { ...written, spec: { ...spec, pool: { mode: 'External', addresses: [proxy] } } };
}
