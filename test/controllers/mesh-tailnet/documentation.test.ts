import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Policy } from '../../../lab/control-api/state.ts';
import { startClient } from '../../support/control/client.ts';
import { PROJECT } from '../../support/lab/command-line.ts';
import { checkText } from '../../support/tools/checked.ts';

const page = readFileSync(join(PROJECT, 'docs/tailnets.md'), 'utf8');

describe('docs/tailnets.md', () => {
  const [, policyText = ''] = /^```json\n(.*?)^```/ms.exec(page) ?? [];
  const documentedPolicy = JSON.parse(policyText) as Policy;
  const ownerOfMesh = /`"tag:mesh": \["(tag:\w+)"\]`, and `"\1": \[\]`/.exec(page)?.[1] ?? '';
  const [, scopeOne = '', scopeTwo = '', tag = ''] =
    /the scopes `(\S+)` and `(\S+)` and the tag `(\S+)`/.exec(page) ?? [];
  const ownedPolicy = { tagOwners: { [tag]: [ownerOfMesh], [ownerOfMesh]: [] } };

  it.each([
    { dialect: 'vendor', policy: documentedPolicy, clientTag: tag },
    { dialect: 'headscale', policy: documentedPolicy, clientTag: tag },
    { dialect: 'vendor', policy: ownedPolicy, clientTag: ownerOfMesh },
    { dialect: 'headscale', policy: ownedPolicy, clientTag: ownerOfMesh },
  ] as const)(
    'has a policy of $dialect by which a client with $clientTag may create join keys and delete devices',
    async ({ dialect, policy, clientTag }) => {
      const { api, tokens, control, close } = await startClient({ api: { dialect, policy } });
      try {
        const { id, secret } = api.addClient([scopeOne, scopeTwo], [clientTag]);
        await tokens.use({ kind: 'oauth', clientId: id, clientSecret: secret });
        const options = { description: 'a', expirySeconds: 3600, ephemeral: false, preauthorized: true };
        const key = await control.createKey({ ...options, tags: [tag] });
        api.join(key.secret, { hostname: 'meshd-example-0-0123abcd' });
        for (const device of await control.devices()) await control.deleteDevice(device.id);
        expect(await control.devices()).toEqual([]);
        api.audit();
      } finally {
        await close();
      }
    },
  );

  it('shows objects that are valid, without a warning', () => {
    const objects = [...page.matchAll(/^ *```yaml\n(.*?)^ *```/gms)]
      .map(([block, text = '']) => text.replaceAll(new RegExp(`^${/^ */.exec(block)?.[0] ?? ''}`, 'gm'), ''))
      .filter(text => text.startsWith('apiVersion:'));
    expect(objects.length).toBeGreaterThan(0);
    expect(objects.flatMap(text => checkText(text).findings)).toEqual([]);
  });
});
