import { describe, expect, it } from 'vitest';
import { envoyGatewayConfig, envoyGatewayFile } from '../../src/api/envoy-gateway.ts';
import { readDocuments } from '../../src/api/yaml-documents.ts';

const optionsFor = (address: string) => ({
  resources: '/var/lib/generated',
  extension: { address, maxMessageSize: 1000 },
});

describe('the configuration of Envoy Gateway', () => {
  it('as a file has the same content', () => {
    const [document] = readDocuments(envoyGatewayFile(optionsFor('127.0.0.1:5005'))).documents;
    expect(document?.value).toEqual(envoyGatewayConfig(optionsFor('127.0.0.1:5005')));
  });

  it('has the folder, our kinds and one hook for all routes, and never private keys', () => {
    expect(envoyGatewayConfig(optionsFor('127.0.0.1:5005'))).toMatchObject({
      provider: { custom: { resource: { file: { paths: ['/var/lib/generated'] } } } },
      extensionManager: {
        maxMessageSize: '1000',
        hooks: {
          xdsTranslator: {
            post: ['Translation'],
            translation: {
              cluster: { includeAll: true },
              route: { includeAll: true },
              secret: { includeAll: false },
            },
          },
        },
        backendResources: [{ kind: 'MeshEndpoints' }],
        policyResources: [{ kind: 'MeshBinding' }],
      },
    });
  });

  it.each([
    ['127.0.0.1:5005', { ip: { address: '127.0.0.1', port: 5005 } }],
    ['[::1]:5005', { ip: { address: '::1', port: 5005 } }],
    ['mesh.example.com:1', { fqdn: { hostname: 'mesh.example.com', port: 1 } }],
  ])('writes %s in the form of Envoy Gateway', (address, service) => {
    expect(envoyGatewayConfig(optionsFor(address))).toMatchObject({ extensionManager: { service } });
  });

  it('has no extension manager without an extension server', () => {
    expect(envoyGatewayConfig({ resources: '/a' })).not.toHaveProperty('extensionManager');
  });
});
