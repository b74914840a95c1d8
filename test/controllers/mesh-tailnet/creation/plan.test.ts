import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { createdTailnetName } from '../../../../src/api/names.ts';
import { createdTailnet, plan } from '../../../../src/controllers/mesh-tailnet/creation/plan.ts';
import type { Input } from '../../../../src/controllers/mesh-tailnet/creation/plan.ts';
import { named } from '../../../support/declared.ts';
import { meshTailnet } from '../../../support/objects.ts';
import { resourceOf } from '../../../support/store/resources.ts';

const device = {
  id: '1',
  name: 'web.example.ts.net',
  hostname: 'web',
  addresses: [],
  tags: [],
  isAuthorized: true,
  isOnline: true,
  isExternal: false,
  expires: undefined,
  isExpired: false,
  blocksIncoming: false,
};
const ofUser = resourceOf(named(meshTailnet(), 'example-ts-net')) as Kinds['MeshTailnet'];
const ofUs = { ...ofUser, metadata: createdTailnet('example.ts.net').metadata } as Kinds['MeshTailnet'];
const wanted: Input = {
  existing: undefined,
  domain: 'example.ts.net',
  isTaken: false,
  devices: [device],
};

describe('the MeshTailnet of the contract', () => {
  const CASES: readonly { readonly it: string; readonly given: Partial<Input>; readonly does: string }[] = [
    { it: 'is created where a device is in the domain', given: {}, does: 'create' },
    { it: 'is not created without such a device', given: { devices: [] }, does: 'nothing' },
    {
      it: 'is not created for a device that was shared in',
      given: { devices: [{ ...device, isExternal: true }] },
      does: 'nothing',
    },
    {
      it: 'is not created for a device whose name only ends alike',
      given: { devices: [{ ...device, name: 'web.anexample.ts.net' }] },
      does: 'nothing',
    },
    { it: 'is not created for the end of a domain', given: { domain: 'ts.net' }, does: 'nothing' },
    { it: 'is not created for a top-level domain', given: { domain: 'net' }, does: 'nothing' },
    {
      it: 'is not created for the name of a device',
      given: { domain: 'web.example.ts.net' },
      does: 'nothing',
    },
    { it: 'is not created where another has the domain', given: { isTaken: true }, does: 'nothing' },
    { it: 'is not created where no MeshEndpoints wants it', given: { domain: undefined }, does: 'nothing' },
    { it: 'stays while it is wanted', given: { existing: ofUs }, does: 'nothing' },
    {
      it: 'is removed when it is not wanted',
      given: { existing: ofUs, domain: undefined },
      does: 'remove',
    },
    {
      it: 'is removed when another has the domain',
      given: { existing: ofUs, isTaken: true },
      does: 'remove',
    },
    {
      it: 'is never removed where a user made it',
      given: { existing: ofUser, domain: undefined },
      does: 'nothing',
    },
  ];
  it.each(CASES)('$it', ({ given, does }) => {
    expect(plan({ ...wanted, ...given }).do).toBe(does);
  });

  it.each([
    ['example.ts.net', 'example-ts-net'],
    [`${'a'.repeat(40)}.ts.net`, 'mesh-oauth'],
  ])('is named after its domain %s: %s', (domain, name) => {
    expect(createdTailnetName(domain)).toBe(name);
  });
});
