import { describe, expect, it } from 'vitest';
import { COMPONENTS, NAMESPACE, RELAY, relayName } from '../../src/api/names.ts';

describe('names that users and other programs rely on', () => {
  it.each([
    ['the namespace', NAMESPACE, 'mesh-system'],
    ['the operator', COMPONENTS.operator, 'mesh-operator'],
    ['the extension server', COMPONENTS.extensionServer, 'mesh-extension-server'],
    ['the container of mesh pods for datagrams', RELAY.container, 'relay'],
    ['the label of pods with that container', RELAY.label, 'mesh-gateway.dev/relay'],
    ['the ConfigMap and the Service of relays', relayName('home'), 'mesh-relay-home'],
  ])('do not change: %s', (_, name, wanted) => {
    expect(name).toBe(wanted);
  });
});
