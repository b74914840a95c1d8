import { stringify } from 'yaml';
import { envoyGatewayConfig } from '../api/envoy-gateway.ts';
import type { EnvoyGatewayWish } from '../api/envoy-gateway.ts';

/** The configuration of Envoy Gateway as a file for people. */
export function envoyGatewayFile(wish: EnvoyGatewayWish): string {
  return `# For envoy-gateway server --config-path FILE, on the machine of mesh-gateway standalone.\n${stringify(envoyGatewayConfig(wish))}`;
}
