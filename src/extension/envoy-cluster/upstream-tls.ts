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

/** An UpstreamTlsContext of Envoy. */
export type TlsContext = MessageInitShape<typeof UpstreamTlsContextSchema>;

/** The system roots in Envoy's image; Envoy Gateway uses the same path. */
const SYSTEM_ROOTS = '/etc/ssl/certs/ca-certificates.crt';

/**
 * The server name for endpoints without a hostname, which no certificate matches: without a name to verify, Envoy would
 * accept any certificate of a trusted CA.
 */
const NO_HOSTNAME = 'no-hostname.invalid';

/** No certificate has this hash. */
const NO_HASH = '0'.repeat(64);

/** TLS that trusts no certificate, so no connection succeeds. */
export const CLOSED_TLS: TlsContext = {
  commonTlsContext: common({ verifyCertificateHash: [NO_HASH] }, {}),
};

/** The TLS context of endpoints. */
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
  // SNI cannot be an IP address; it is verified, but not sent.
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
      // As a client, Envoy's default maximum is 1.2.
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
