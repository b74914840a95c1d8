import { expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import type { ServiceNames, VipServiceState } from '../../../src/controllers/mesh-endpoints/vip-services.ts';
import { vipServicesOf } from '../../../src/controllers/mesh-endpoints/vip-services.ts';
import { publishing } from '../../support/controllers/vip-services/scene.ts';

const NAMES: ServiceNames = {
  ...{ holders: new Map(), held: new Map(), left: new Map(), full: new Set(), maxVipServices: 8 },
  addresses: new Set(),
};

const NOT_KEPT: VipServiceState = { status: 'Pending', reason: 'NotRegistered', text: 'not kept' };
const HELD_BY_OTHER = new Map([['svc:web', 'team/first']]);
const HELD = new Map([['svc:web', 'default/web']]);
const FULL = new Set(['default']);

/** The reason in the entry of default/web for its service; undefined where it has no entry yet. */
function reasonOf(names: Partial<ServiceNames>, state?: VipServiceState): string | undefined {
  const states = new Map(state ? [['default/web', new Map([['web', state]])]] : []);
  const services = { states, all: undefined, problem: undefined, names: { ...NAMES, ...names } };
  const stored = publishing('web', ['web']) as Kinds['MeshEndpoints'];
  const options = { stored, services, isAllowed: true, now: new Date() };
  return vipServicesOf(options)?.entries[0]?.reason;
}

it.each<[string, Partial<ServiceNames>, VipServiceState | undefined, string | undefined]>([
  ['is a conflict where another has it', { held: HELD_BY_OTHER }, undefined, 'ListedByOther'],
  [
    'is a conflict where another has it, which is not registered, also in a full namespace',
    { held: HELD_BY_OTHER, full: FULL },
    undefined,
    'ListedByOther',
  ],
  [
    'is a conflict where another has left it',
    { held: HELD_BY_OTHER, left: new Map([['svc:web', 'team/first 2026-01-15T12:00:00Z']]) },
    undefined,
    'ListedByOther',
  ],
  ['is not decided yet where it is free', {}, undefined, undefined],
  [
    'is not decided yet where the object has left it, and lists it again',
    { held: HELD, left: new Map([['svc:web', 'default/web 2026-01-15T12:00:00Z']]) },
    undefined,
    undefined,
  ],
  ['is too many where its namespace is full', { full: FULL }, undefined, 'TooManyServices'],
  ['is too many where the tailnet is full', { full: 'all' }, undefined, 'TooManyServices'],
  [
    'is what its holder has, registered or not, in a full namespace',
    { held: HELD, full: FULL },
    NOT_KEPT,
    'NotRegistered',
  ],
])('a VIP service %s', (_, names, state, expected) => {
  expect(reasonOf(names, state)).toBe(expected);
});
