import { describe, expect, it } from 'vitest';
import { joinFailureOf } from '../../../../src/controllers/mesh-tailnet/pool/join-failure.ts';
import { podOf } from '../../../support/controllers/mesh-tailnet/mesh-pods.ts';

/** The end of the log of a container whose login failed. */
function ended(response: string) {
  const log = [
    'boot: Running "tailscale up"',
    `Received error: ${response}`,
    `backend error: ${response}`,
    'boot: failed to auth tailscale: failed to auth tailscale: tailscale up failed: exit status 1',
  ];
  return podOf('meshd-example-0', { terminated: log.join('\n') });
}

describe('a join key was refused where the control server responded', () => {
  it.each([
    'invalid key: API key does not exist',
    'invalid key: API key kABC not valid',
    'invalid key: unable to validate API key',
    'TryLogin: register request: http 400: invalid key: invalid API token',
  ])('"%s", of the vendor', response => {
    expect(joinFailureOf(ended(response))).toBe('refused');
  });

  it.each([
    'authkey already used',
    'authkey expired',
    'authkey revoked',
    'invalid pre auth key',
    'invalid authkey',
    'AuthKey not found',
    'AuthKey has already been used',
  ])('"%s", of headscale', response => {
    expect(joinFailureOf(ended(response))).toBe('refused');
  });
});

describe('a login failed for a reason that is not known', () => {
  it('where it ended with another response', () => {
    expect(joinFailureOf(ended('node store is read-only'))).toBe('unknown');
  });

  it('but not where meshd ended after it had joined, or has not ended', () => {
    const left = 'boot: tailscaled left running state (now in state "NeedsLogin"), exiting';
    expect(joinFailureOf(podOf('meshd-example-0', { terminated: left }))).toBeUndefined();
    expect(joinFailureOf(podOf('meshd-example-0', { isReady: true }))).toBeUndefined();
    expect(joinFailureOf(undefined)).toBeUndefined();
  });

  it('and not where the pod is being deleted, which had an earlier key', () => {
    const pod = ended('authkey expired');
    const deletionTimestamp = '2026-01-15T12:00:00Z';
    expect(joinFailureOf({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } })).toBeUndefined();
  });
});
