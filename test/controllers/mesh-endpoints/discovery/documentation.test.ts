import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { severityOf } from '../../../../src/api/problem.ts';
import { startControlApi } from '../../../../lab/control-api/control-api.ts';
import type { Policy } from '../../../../lab/control-api/state.ts';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { endpointsOf } from '../../../../src/api/objects/endpoints.ts';
import type { Route } from '../../../../src/api/objects/gateway-api.ts';
import { addressText } from '../../../../src/api/socket-address.ts';
import { decodeDevices } from '../../../../src/control/decode.ts';
import { discover } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import { resourceOf } from '../../../support/store/resources.ts';
import { managedTailnet } from '../../../support/traffic/objects.ts';
import { tracedResources } from '../../../support/tools/routes.ts';
import { checkText } from '../../../support/tools/checked.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Example = { readonly name: string; readonly text: string; readonly found: string };

const page = readFileSync('docs/discovery.md', 'utf8');

/** The devices of the first table. */
const listed = [...page.matchAll(/^\| `([\w.-]+)` +\| `([\d.]+)` +\| (.*?) +\|$/gm)].map(
  ([, name = '', address = '', tags = '']) => ({
    ...{ nodeId: name, name, addresses: [address], authorized: true, connectedToControl: true },
    tags: tags.replaceAll('`', '').split(', '),
  }),
);
const devices = decodeDevices({ devices: listed }, new Date());

/** Each example with the endpoints that it has by the text behind it. */
const examples = [
  ...page.matchAll(
    /^```yaml\n(apiVersion: \S+\nkind: MeshEndpoints\n.*?)^```\n(?:(?!```).)*^```text\n(.*?)^```/gms,
  ),
].map(([, text = '', found = '']): Example => ({ name: /name: (\S+)/.exec(text)?.[1] ?? '', text, found }));

/** The object as the operator has written it, and the route. */
function resourcesIn(text: string): { readonly object: MeshEndpoints; readonly route: Route } {
  const [given, route] = parseAllDocuments(text).map(document => {
    const written = document.toJS() as { readonly metadata: object };
    return resourceOf({ ...written, metadata: { namespace: 'default', ...written.metadata } });
  });
  const object = given as MeshEndpoints;
  const endpoints = discover(object.spec, devices, undefined).endpoints.map(({ endpoint, deviceID }) => {
    const { name, meshFQDN, protocol, port } = endpoint;
    const address = addressText(endpoint);
    return {
      name,
      meshFQDN,
      protocol,
      port,
      deviceID,
      address,
      source: 'TagSelector',
      status: 'Healthy',
    } as const;
  });
  const status = { discovery: { tailnet: object.spec.tailnet }, endpoints };
  return { object: { ...object, status }, route: route as Route };
}

function expectTraffic(object: MeshEndpoints, route: Route): void {
  const [found] = tracedResources([resourceOf(managedTailnet()), object, route]);
  expect(found?.problems).toEqual([]);
  expect(found?.reaches).toBe('all');
}

describe('the examples of docs/discovery.md', () => {
  it('are all those of the page', () => {
    expect(examples).toHaveLength(page.match(/^kind: MeshEndpoints$/gm)?.length ?? 0);
    expect(examples.length).toBeGreaterThan(3);
  });

  it.each(examples)('are valid: $name', ({ text }) => {
    const { findings, objects } = checkText(text);
    expect(findings.filter(each => severityOf(each) !== 'note')).toEqual([]);
    expect(objects).toBe(2);
  });

  it.each(examples)('find these devices: $name', ({ text, found }) => {
    const { object } = resourcesIn(text);
    const lines = endpointsOf(object).map(each => `${each.name}  ${addressText(each)}  ${each.protocol}\n`);
    expect(lines.join('')).toBe(found);
  });

  it.each(examples)('carry the traffic of their route: $name', ({ text }) => {
    const { object, route } = resourcesIn(text);
    expectTraffic(object, route);
  });
});

describe('examples/discovery', () => {
  it('finds what the static list of examples/cluster names, on the same port', () => {
    const [dynamic, listed] = ['discovery', 'cluster'].map(folder =>
      resourcesIn(readFileSync(`examples/${folder}/web.yaml`, 'utf8')),
    );
    const addressesOf = (object: MeshEndpoints | undefined) =>
      object ? endpointsOf(object).map(addressText) : [];
    expect(dynamic?.object.spec.endpoints).toBeUndefined();
    expect(addressesOf(dynamic?.object)).toEqual(expect.arrayContaining([...addressesOf(listed?.object)]));
    expect(addressesOf(listed?.object)).toHaveLength(2);
    expect(dynamic?.route).toEqual(listed?.route);
  });

  it('carries the traffic of its route', () => {
    const { object, route } = resourcesIn(readFileSync('examples/discovery/web.yaml', 'utf8'));
    expectTraffic(object, route);
  });
});

describe('docs/discovery.md', () => {
  it.each(['vendor', 'headscale'] as const)(
    'has a policy for %s with an owner of each tag',
    async dialect => {
      const [, text = ''] = /^```json\n(.*?)^```/ms.exec(page) ?? [];
      const policy = JSON.parse(text) as Policy;
      const api = await startControlApi({ dialect, policy });
      await api.close();
      const used = new Set(devices.flatMap(({ tags }) => tags));
      const granted = new Set(policy.grants?.flatMap(({ src, dst }) => [...src, ...dst]));
      expect(Object.keys(policy.tagOwners).toSorted()).toEqual([...used].toSorted());
      expect([...granted].filter(tag => !used.has(tag))).toEqual([]);
    },
  );

  it('has a MeshTailnet whose allowed tags let these devices be found', () => {
    const [, text = ''] = /^```yaml\n(apiVersion: \S+\nkind: MeshTailnet\n.*?)^```/ms.exec(page) ?? [];
    expect(checkText(text)).toEqual({ findings: [], objects: 1 });
    const [document] = parseAllDocuments(text);
    const { spec } = resourceOf(document?.toJS() as object) as Kinds['MeshTailnet'];
    const found = ['web', 'cache'].flatMap(key => {
      const selecting = {
        tailnet: spec.tailnet,
        paused: false,
        tagSelectors: [{ key, operator: 'Exists' as const }],
      };
      return discover(selecting, devices, spec.allowedTags).endpoints.map(({ endpoint }) => endpoint.name);
    });
    const [, names = ''] = /are found: here (.*?)\. A selector/s.exec(page) ?? [];
    expect(found).toEqual(names.match(/[a-z]+-\d/g));
  });
});
