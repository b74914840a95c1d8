import type { MessageInitShape } from '@bufbuild/protobuf';
import { familyOf } from '../../api/ip.ts';
import type { UpstreamTls } from '../../traffic/upstream-tls.ts';
import {
  SubjectAltNameMatcher_SanType as SanType,
  TlsParameters_TlsProtocol as TlsProtocol,
} from '../proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';
import type {
  CertificateValidationContextSchema,
  CommonTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';

/** How Envoy speaks TLS with endpoints. */
export type TlsContext = MessageInitShape<typeof UpstreamTlsContextSchema>;

/** Where Envoy finds the roots of its system: Envoy Gateway names the same file to it. */
const SYSTEM_ROOTS = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Sent for an endpoint that has no hostname, and looked for in its certificate: no certificate has it. Without any name
 * to look for, Envoy takes the certificate of anyone that is trusted.
 */
const NO_HOSTNAME = 'no-hostname.invalid';

/** No certificate has this hash. */
const NO_HASH = '0'.repeat(64);

/** TLS that trusts nobody: through it nothing passes, in clear or otherwise. */
export const CLOSED: TlsContext = {
  commonTlsContext: common({ verifyCertificateHash: [NO_HASH] }, {}),
};

/** TLS as some endpoints need it. */
export function tlsContext(tls: UpstreamTls): TlsContext {
  const { serverName, insecureSkipVerify } = tls;
  const validation = insecureSkipVerify ? undefined : validationOf(tls);
  const commonTlsContext = common(validation, tls);
  if (serverName.is === 'per-endpoint')
    return {
      commonTlsContext,
      autoHostSni: true,
      autoSniSanValidation: !insecureSkipVerify,
      sni: NO_HOSTNAME,
    };
  // An address is no server name: it is looked for in the certificate, and not sent.
  return familyOf(serverName.name) ? { commonTlsContext } : { commonTlsContext, sni: serverName.name };
}

type Validation = MessageInitShape<typeof CertificateValidationContextSchema>;

function common(
  validation: Validation | undefined,
  { minVersion = '1.2', alpn }: Partial<UpstreamTls>,
): MessageInitShape<typeof CommonTlsContextSchema> {
  return {
    tlsParams: {
      tlsMinimumProtocolVersion: minVersion === '1.3' ? TlsProtocol.TLSv1_3 : TlsProtocol.TLSv1_2,
      // As a client, Envoy stops at 1.2 where it is not told otherwise.
      tlsMaximumProtocolVersion: TlsProtocol.TLSv1_3,
    },
    alpnProtocols: alpn === undefined ? [] : [alpn],
    ...(validation && { validationContextType: { case: 'validationContext', value: validation } }),
  };
}

function validationOf({ serverName, ca }: UpstreamTls): Validation {
  const trustedCa = {
    specifier:
      ca === undefined
        ? ({ case: 'filename', value: SYSTEM_ROOTS } as const)
        : ({ case: 'inlineString', value: ca } as const),
  };
  if (serverName.is === 'per-endpoint') return { trustedCa };
  const sanType = familyOf(serverName.name) ? SanType.IP_ADDRESS : SanType.DNS;
  const matcher = { matchPattern: { case: 'exact', value: serverName.name } } as const;
  return { trustedCa, matchTypedSubjectAltNames: [{ sanType, matcher }] };
}
