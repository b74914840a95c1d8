import { expect, it } from 'vitest';
import { ControlError } from '../../../src/control/control.ts';
import type { ControlErrorReason } from '../../../src/control/control.ts';
import { perform } from '../../../src/controllers/vip-services/perform.ts';

const context = {
  installation: '0a1b2c3d',
  now: new Date(0),
  isOnline: () => true,
  leavingForMs: 0,
  seen: [],
};

/** The services that a round reads, where requests for some of them are refused. */
async function readIn(refused: Readonly<Record<string, ControlErrorReason>>): Promise<readonly string[]> {
  const read: string[] = [];
  const api = {
    service: (name: string) => {
      read.push(name);
      const reason = refused[name];
      return reason ? Promise.reject(new ControlError(reason, 'refused')) : Promise.resolve(undefined);
    },
    putService: () => Promise.reject(new Error('nothing is written')),
    deleteService: () => Promise.reject(new Error('nothing is deleted')),
    serviceHosts: () => Promise.resolve([]),
  };
  const options = { claims: new Map(), contextOf: () => context, devices: [] };
  await perform(Array.from('abcdef'), options, { api, count: () => undefined });
  return read;
}

it.each<[string, Readonly<Record<string, ControlErrorReason>>, string]>([
  ['reads all services', {}, 'abcdef'],
  ['goes on after one that the control API refuses as a scope', { a: 'ScopeMissing' }, 'abcdef'],
  ['goes on after two at which it fails', { a: 'Unavailable', b: 'Throttled' }, 'abcdef'],
  [
    'goes on where others succeed in between',
    { a: 'Unavailable', b: 'Unavailable', d: 'Unavailable' },
    'abcdef',
  ],
  ['ends after three in a row', { b: 'Unavailable', c: 'Throttled', d: 'ScopeMissing' }, 'abcd'],
  ['goes on however many are invalid', { a: 'Invalid', b: 'Invalid', c: 'Invalid' }, 'abcdef'],
  ['ends at once where the control API cannot be reached', { b: 'Unreachable' }, 'ab'],
  ['ends at once where the credentials are invalid', { b: 'CredentialsInvalid' }, 'ab'],
])('a round of writes %s', async (_, refused, expected) => {
  expect((await readIn(refused)).join('')).toBe(expected);
});
