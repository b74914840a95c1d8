import { describe, expect, it } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import type { UpstreamTlsContext } from '../../../src/extension/proto/envoy/extensions/transport_sockets/tls/v3_pb.ts';
import type { TransportSocket } from '../../../src/traffic/settings/envoy-cluster-settings.ts';
import type { UpstreamTls } from '../../../src/traffic/upstream-tls.ts';
import { gatewayCluster, opened, read } from '../../support/extension/clusters.ts';
import { CA, settings, tlsSocket } from '../../support/extension/cluster-settings.ts';

const mesh = envoyClusterEditor({ target: '127.0.0.1:5005' });

function contextOf(socket: TransportSocket): UpstreamTlsContext | undefined {
  return opened(read(mesh(gatewayCluster(), settings({ defaultSocket: socket }))).transportSocket).tls;
}

function validationOf(more: Partial<UpstreamTls>) {
  return contextOf(tlsSocket(more))?.commonTlsContext?.validationContextType.value;
}

const NAMED = { serverName: { is: 'fixed', name: 'legacy.example.org' } } as const;
const SYSTEM = { specifier: { case: 'filename', value: '/etc/ssl/certs/ca-certificates.crt' } };

describe('TLS with a server name per endpoint', () => {
  it("sends each endpoint's hostname and verifies it in the certificate", () => {
    expect(contextOf(tlsSocket())).toMatchObject({ autoHostSni: true, autoSniSanValidation: true });
    expect(validationOf({})).toMatchObject({ trustedCa: SYSTEM, matchTypedSubjectAltNames: [] });
  });

  it('verifies a name that no certificate has for an endpoint without a hostname', () => {
    expect(contextOf(tlsSocket())).toMatchObject({ sni: 'no-hostname.invalid' });
  });

  it('trusts the configured CA in place of the system roots', () => {
    expect(validationOf({ ca: CA })).toMatchObject({
      trustedCa: { specifier: { case: 'inlineString', value: CA } },
    });
  });
});

describe('TLS with one server name', () => {
  it('sends it, and verifies it in the certificate', () => {
    expect(contextOf(tlsSocket(NAMED))).toMatchObject({
      sni: 'legacy.example.org',
      autoHostSni: false,
      autoSniSanValidation: false,
    });
    expect(validationOf(NAMED)).toMatchObject({
      trustedCa: SYSTEM,
      matchTypedSubjectAltNames: [
        {
          sanType: 2,
          matcher: { matchPattern: { case: 'exact', value: 'legacy.example.org' }, ignoreCase: false },
        },
      ],
    });
  });

  it('verifies an IP address, but does not send it', () => {
    const serverName = { is: 'fixed', name: '100.64.0.7' } as const;
    expect(contextOf(tlsSocket({ serverName }))).toMatchObject({ sni: '' });
    expect(validationOf({ serverName })).toMatchObject({ matchTypedSubjectAltNames: [{ sanType: 4 }] });
  });
});

describe('TLS with insecureSkipVerify', () => {
  it.each([
    ['sends the name of the endpoint', {}, { autoHostSni: true, autoSniSanValidation: false }],
    [
      'sends its one name',
      NAMED,
      { sni: 'legacy.example.org', autoHostSni: false, autoSniSanValidation: false },
    ],
  ])('%s, and verifies no certificate', (_, more, expected) => {
    const context = contextOf(tlsSocket({ ...more, insecureSkipVerify: true }));
    expect(context).toMatchObject(expected);
    expect(context?.commonTlsContext?.validationContextType.case).toBeUndefined();
  });
});

describe('a closed socket', () => {
  it('requires a certificate hash that cannot exist', () => {
    const validation = contextOf({ is: 'closed' })?.commonTlsContext?.validationContextType;
    expect(validation).toMatchObject({
      case: 'validationContext',
      value: { verifyCertificateHash: ['0'.repeat(64)] },
    });
    expect(validation?.value?.trustedCa).toBeUndefined();
  });
});

describe('TLS', () => {
  it.each([
    ['1.2 and 1.3 by default', {}, { tlsMinimumProtocolVersion: 3, tlsMaximumProtocolVersion: 4 }],
    ['1.2 and 1.3', { minVersion: '1.2' }, { tlsMinimumProtocolVersion: 3, tlsMaximumProtocolVersion: 4 }],
    ['1.3 only', { minVersion: '1.3' }, { tlsMinimumProtocolVersion: 4, tlsMaximumProtocolVersion: 4 }],
  ] as const)('is %s', (_, more, expected) => {
    expect(contextOf(tlsSocket(more))?.commonTlsContext?.tlsParams).toMatchObject(expected);
  });

  it.each([
    ['nothing for raw bytes', {}, []],
    ['HTTP/2', { alpn: 'h2' }, ['h2']],
    ['HTTP/1.1', { alpn: 'http/1.1' }, ['http/1.1']],
  ] as const)('offers %s', (_, more, expected) => {
    expect(contextOf(tlsSocket(more))?.commonTlsContext?.alpnProtocols).toEqual(expected);
  });
});
