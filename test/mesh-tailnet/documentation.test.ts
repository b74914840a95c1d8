import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lint } from '../../src/lint/lint.ts';
import { POOL_REASONS } from '../../src/mesh-tailnet/pool/status.ts';
import { NOT_READY_REASONS } from '../../src/mesh-tailnet/status.ts';
import type { AuthenticationProblem } from '../../src/mesh-tailnet/status.ts';
import { PROJECT } from '../support/lab/command-line.ts';

const page = readFileSync(join(PROJECT, 'docs/tailnets.md'), 'utf8');

/** Condition and reason of each row of the table of conditions. */
const documented = [...page.matchAll(/^\| `(\w+)` +\| `(\w+)` +\|/gm)].map(
  ([, condition = '', reason = '']) => `${condition}/${reason}`,
);

/** A reason that is added to the type and not here does not compile. */
const AUTHENTICATED: Readonly<Record<AuthenticationProblem['reason'], true>> = {
  SecretNotFound: true,
  SecretKeyMissing: true,
  CredentialsInvalid: true,
  ScopeMissing: true,
  TailnetMismatch: true,
  Throttled: true,
  Unreachable: true,
  ControlURLMissing: true,
};

describe('docs/tailnets.md', () => {
  it('has a row for each reason of a condition, with cause and fix', () => {
    const reasons = [
      ...Object.keys(AUTHENTICATED).map(reason => `Authenticated/${reason}`),
      ...POOL_REASONS.map(reason => `PoolReady/${reason}`),
      ...NOT_READY_REASONS.map(reason => `Ready/${reason}`),
      'ServiceDiscoverySupported/NotSupported',
    ];
    expect([...documented].sort()).toEqual([...reasons].sort());
  });

  it('shows objects that are valid, without a warning', () => {
    const objects = [...page.matchAll(/^ *```yaml\n(.*?)^ *```/gms)]
      .map(([block, text = '']) => text.replaceAll(new RegExp(`^${/^ */.exec(block)?.[0] ?? ''}`, 'gm'), ''))
      .filter(text => text.startsWith('apiVersion:'));
    expect(objects.length).toBeGreaterThan(0);
    expect(objects.flatMap(text => lint(text).findings)).toEqual([]);
  });
});
