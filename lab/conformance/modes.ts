import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GROUP } from '../../src/api/generated/kinds.ts';
import { PROJECT } from '../install/image.ts';
import { versionOfBinary } from '../parts/locate.ts';

/** What the suite runs against: Envoy Gateway alone, with the product beside it, or with MeshEndpoints for Services. */
export const MODES = ['envoy-gateway', 'installed', 'mesh-endpoints'] as const;

/** The name of a mode. */
export type Mode = (typeof MODES)[number];

/** The author of what the suite runs against, as the report has it. */
export type Implementation = {
  readonly organization: string;
  readonly project: string;
  readonly url: string;
  readonly version: string;
  readonly contact: readonly string[];
};

const { version: VERSION } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
  readonly version: string;
};

/** The implementation of a mode. */
export function implementationOf(mode: Mode): Implementation {
  const [organization, project, url, version] =
    mode === 'envoy-gateway'
      ? [
          'envoyproxy',
          'envoy-gateway',
          'https://github.com/envoyproxy/gateway',
          versionOfBinary('envoy-gateway'),
        ]
      : ['mesh-gateway', 'mesh-gateway', `https://${GROUP}`, VERSION];
  return { organization, project, url, version: `v${version}`, contact: [url] };
}

const POLICY = 'a BackendTLSPolicy targets Services';

/** The tests that are not run where MeshEndpoints take the place of Services: they are about Services, each for this reason. */
const EXCLUDED: Readonly<Record<string, string>> = {
  BackendTLSPolicy: POLICY,
  BackendTLSPolicyConflictResolution: POLICY,
  BackendTLSPolicyInvalidCACertificateRef: POLICY,
  BackendTLSPolicyInvalidKind: POLICY,
  BackendTLSPolicyObservedGenerationBump: POLICY,
  BackendTLSPolicySANValidation: POLICY,
  GatewayTLSBackendClientCertificate: 'a client certificate needs a BackendTLSPolicy, which targets Services',
  HTTPRouteServiceTypes: 'it is about headless Services and EndpointSlices',
};

/** The tests that a mode leaves out. */
export function excludedIn(mode: Mode): Readonly<Record<string, string>> {
  return mode === 'mesh-endpoints' ? EXCLUDED : {};
}

/** The tests that fail where MeshEndpoints take the place of Services, each with its cause in Envoy Gateway. */
const LIMITS: Readonly<Record<string, string>> = {
  UDPRouteReferenceGrant:
    'its traffic flows, but for ResolvedRefs Envoy Gateway reads only ReferenceGrants that have an HTTPRoute or GRPCRoute, for MeshEndpoints',
};

/** The failures of a mode whose cause is known. */
export function limitsIn(mode: Mode): Readonly<Record<string, string>> {
  return mode === 'mesh-endpoints' ? LIMITS : {};
}
