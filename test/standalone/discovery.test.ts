import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startControlApi } from '../../lab/control-api/control-api.ts';
import { OAUTH_SECRET } from '../../src/api/names.ts';
import { gatewayObject, named, route } from '../support/declared.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolders, writeWhole } from '../support/files/folder.ts';
import { testClient } from '../support/grpc/client.ts';
import { followEndpoints } from '../support/grpc/followed-endpoints.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';
import { startHere } from '../support/standalone/served-here.ts';

it('standalone sends Envoy the devices that have a tag, when they get it and until they lose it', async () => {
  const api = await startControlApi();
  onTestFinished(() => api.close());
  const { id, secret } = api.addClient(['devices:core:read']);
  const { folder, state, generated } = makeFolders();
  const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
  const objects = [
    named(
      meshTailnet({
        controlURL: api.url,
        syncInterval: '1s',
        pool: { mode: 'External', addresses: ['127.0.0.1:1055'] },
      }),
      'example',
    ),
    gatewayObject('Gateway', 'default/public', { gatewayClassName: 'mesh', listeners }),
    named(
      meshEndpoints({
        endpoints: undefined,
        tagSelectors: [{ key: 'web', operator: 'Exists' }],
        endpointTemplate: { port: 8080 },
      }),
      'default/web',
    ),
    route('HTTPRoute', 'default/web'),
  ];
  await writeWhole(join(folder, 'all.yaml'), objects.map(object => JSON.stringify(object)).join('\n---\n'));
  const first = api.addDevice({ hostname: 'web-1', tags: ['tag:web'] });
  const secrets = join(state, 'secrets', OAUTH_SECRET);
  mkdirSync(secrets, { recursive: true });
  writeFileSync(join(secrets, 'client-id'), id);
  writeFileSync(join(secrets, 'client-secret'), secret);
  const folders = { folder, state, generated };
  const { started } = await startHere(folders, { 'secrets-dir': join(state, 'secrets') });
  const endpoints = followEndpoints(
    testClient(await started),
    'default/public',
    'httproute/default/web/rule/0',
  );
  const at = (device: typeof first) => `${device.addresses[0]}:8080`;
  await eventually(() => expect(endpoints()).toEqual([at(first)]));
  const second = api.addDevice({ hostname: 'web-2', tags: ['tag:web'] });
  await eventually(() => expect(endpoints()).toEqual([at(first), at(second)]));
  api.changeDevice(first.nodeId, { tags: ['tag:db'] });
  await eventually(() => expect(endpoints()).toEqual([at(second)]));
});
