import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../src/api/generated/types.ts';
import { gatewaySettings, sharedSettings } from '../../src/traffic/gateway-settings.ts';
import type { GatewaySettings } from '../../src/traffic/gateway-settings.ts';
import { named } from '../support/declared.ts';
import { meshGateway } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';

const DIRECT = { dataPath: { mode: 'Direct' } } as const;
const PROXY = { dataPath: { mode: 'Proxy' } } as const;
const [OLD, NEW] = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00+00:00'];

function created(name: string, at: string | undefined, spec: object = {}): Kinds['MeshGateway'] {
  const metadata = at === undefined ? {} : { creationTimestamp: at };
  return resourceOf(named(meshGateway({ ...spec }), `default/${name}`, metadata)) as Kinds['MeshGateway'];
}

describe('the settings of a Gateway', () => {
  it.each([
    ['undefined without a MeshGateway', [], undefined],
    ['those of its MeshGateway', [created('a', OLD, DIRECT)], { since: OLD, ...DIRECT }],
    [
      'with the checks that it sets',
      [created('a', OLD, { healthChecks: { envoy: 'Off' } })],
      { since: OLD, healthChecks: { envoy: 'Off' } },
    ],
    ['its age alone where it sets nothing', [created('a', OLD)], { since: OLD }],
    ['those of the oldest', [created('a', NEW, PROXY), created('b', OLD, DIRECT)], { since: OLD, ...DIRECT }],
    [
      'those of the first by name of two of one age',
      [created('b', OLD, PROXY), created('a', OLD, DIRECT)],
      { since: OLD, ...DIRECT },
    ],
    [
      'not those of one without a time',
      [created('a', undefined, PROXY), created('b', NEW, DIRECT)],
      { since: NEW, ...DIRECT },
    ],
    ['without a time where there is none', [created('a', undefined, DIRECT)], DIRECT],
  ])('are %s', (_, meshGateways, settings) => {
    expect(gatewaySettings(meshGateways)).toEqual(settings);
  });
});

describe('the settings for a route on several Gateways of one Envoy', () => {
  const gateways = ['one', 'two', 'three'].map(
    name => ({ kind: 'Gateway', namespace: 'default', name }) as const,
  );
  const shared = (settings: Readonly<Record<string, GatewaySettings>>) =>
    sharedSettings(gateways, ({ name }) => settings[name]);

  it.each([
    ['undefined where none has any', {}, undefined],
    ['those of the only one that has any', { two: DIRECT }, DIRECT],
    [
      'the oldest',
      { one: { since: NEW, ...PROXY }, two: { since: OLD, ...DIRECT } },
      { since: OLD, ...DIRECT },
    ],
    [
      'of equally old ones, those of the first Gateway by name',
      { two: { since: OLD, ...DIRECT }, three: { since: OLD, ...PROXY } },
      { since: OLD, ...PROXY },
    ],
  ])('are %s', (_, settings, expected) => {
    expect(shared(settings)).toEqual(expected);
  });
});
