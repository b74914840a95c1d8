import type { ResourceOf } from '../../../api/objects/resource.ts';

/** What control servers respond with where they do not accept a join key, in lower case. */
const REFUSALS: Readonly<Record<'vendor' | 'headscale', readonly string[]>> = {
  // `invalid key: API key does not exist`, `... not valid`, `unable to validate API key` and others.
  vendor: ['invalid key'],
  headscale: [
    'authkey already used',
    'authkey expired',
    'authkey revoked',
    'authkey not found',
    'authkey has already been used',
    'invalid authkey',
    // One that was deleted.
    'invalid pre auth key',
  ],
};

/** How containerboot ends where a login with a join key failed, whatever the control server responded. */
const JOIN_FAILED = 'tailscale up failed';

/**
 * Why meshd did not join with the key that it has: it was refused, or the login failed for a reason that is not known here. A
 * pod that is being deleted had an earlier key.
 */
export function joinFailureOf(pod: ResourceOf<'Pod'> | undefined): 'refused' | 'unknown' | undefined {
  if (!pod || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const message = pod.status.container?.lastTerminated?.message.toLowerCase() ?? '';
  if (
    Object.values(REFUSALS)
      .flat()
      .some(text => message.includes(text))
  )
    return 'refused';
  return message.includes(JOIN_FAILED) ? 'unknown' : undefined;
}

/** How containerboot ends where meshd is not logged in any more: its node key has expired, or its device was removed. */
const LEFT_RUNNING = 'left running state';

/** Whether meshd was logged out, and its container has ended for that. */
export function wasLoggedOut(pod: ResourceOf<'Pod'> | undefined): boolean {
  return pod?.status.container?.lastTerminated?.message.toLowerCase().includes(LEFT_RUNNING) ?? false;
}
