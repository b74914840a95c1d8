import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { named } from '../support/declared.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import { sliceObject, serviceObject, tailnetObject } from '../support/traffic/objects.ts';
import { checkText } from '../support/tools/checked.ts';

const page = readFileSync('docs/route-policy.md', 'utf8');
const [failover = '', preferred = ''] = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  ([, text = '']) => text,
);

const objectsIn = (text: string) => parseAllDocuments(text).map(document => document.toJS() as object);

describe('docs/route-policy.md', () => {
  it('begins with an example that fails over from a Service to the tailnet, and back', () => {
    expect(page.indexOf(failover)).toBeLessThan(200);
    expect(checkText(failover)).toEqual({ findings: [], objects: 3 });
    const world = (...pods: readonly string[]) => [
      ...[tailnetObject(), ...objectsIn(failover)],
      named(serviceObject('web', [{ port: 8080 }]), 'default/web'),
      sliceObject(
        'web',
        pods.map(address => ({ addresses: [address], conditions: { ready: true } })),
      ),
    ];
    const prioritiesOf = (...pods: readonly string[]) => {
      const { rule, through } = trafficOf(resourcesFrom(world(...pods)));
      expect([rule.unused, rule.levels?.problems]).toEqual([[], []]);
      return through.Proxy.assignment.localities
        .toSorted((a, b) => a.priority - b.priority)
        .map(({ priority, endpoints }) => [priority, ...endpoints.map(({ address }) => address)]);
    };
    expect(prioritiesOf('10.0.0.5')).toEqual([
      [0, '10.0.0.5'],
      [1, '100.64.0.11'],
    ]);
    expect(prioritiesOf()).toEqual([[0, '100.64.0.11']]);
  });

  it('has the example of examples/failover', () => {
    const example = readFileSync('examples/failover/web.yaml', 'utf8');
    expect(objectsIn(failover)).toEqual(objectsIn(example));
  });

  it('has an example of preferences that is valid, without a warning', () => {
    expect(checkText(preferred)).toEqual({ findings: [], objects: 1 });
  });
});
