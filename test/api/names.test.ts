import { describe, expect, it } from 'vitest';
import { COMPONENTS, NAMESPACE } from '../../src/api/names.ts';

describe('names that users and other programs rely on', () => {
  it.each([
    ['the namespace', NAMESPACE, 'mesh-system'],
    ['the operator', COMPONENTS.operator, 'mesh-operator'],
    ['the extension server', COMPONENTS.extensionServer, 'mesh-extension-server'],
  ])('do not change: %s', (_, name, wanted) => {
    expect(name).toBe(wanted);
  });
});
