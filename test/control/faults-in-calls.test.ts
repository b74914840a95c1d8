import { describe, expect, it, onTestFinished } from 'vitest';
import { FAULTS } from '../../lab/control-api/faults.ts';
import type { Fault } from '../../lab/control-api/faults.ts';
import type { Dialect } from '../../lab/control-api/state.ts';
import type { ControlErrorReason } from '../../src/control/control.ts';
import { CALL_SCOPES, CALLS, CALL_BOUND_MS, outcomeOf } from '../support/control/calls.ts';
import type { CallName, TestedCall } from '../support/control/calls.ts';
import { startClient } from '../support/control/client.ts';
import { IS_LONG } from '../support/eventually.ts';

type Outcome = ControlErrorReason | 'success';

/** A fault, and how calls end while it lasts. */
type Row = {
  readonly name: string;
  readonly fault: Fault;
  readonly is: Outcome;
  /** Whether GET and DELETE are sent again. */
  readonly isTransient?: boolean;
  /** How calls end that end otherwise; at one dialect, where it is named. */
  readonly but: Partial<Record<CallName | `${CallName} at ${Dialect}`, Outcome>>;
};

/** Any HTTP response counts as reachable. */
const PROBE = { probe: 'success' } as const;
/** Calls that need no field of a response. */
const LENIENT = {
  ...PROBE,
  deleteDevice: 'success',
  revokeKey: 'success',
  hasServices: 'success',
  putService: 'success',
  deleteService: 'success',
} as const;
/** A status from which it follows whether there are services. */
const DETECTED = { ...PROBE, hasServices: 'success' } as const;

const refused = (status: number): Fault => ({ is: 'answer', status, json: { message: 'no' } });
const transient = { isTransient: true, but: {} } as const;
const busy = { isTransient: true, but: PROBE } as const;
const REDIRECT: Fault = { is: 'redirect', to: 'http://127.0.0.1:9' };
const UNKNOWN_ROUTE: Fault = { is: 'answer', status: 404, text: '404 page not found' };

const ROWS: readonly Row[] = [
  { name: '500', fault: FAULTS.internalError, is: 'Unavailable', ...busy },
  { name: '502 in HTML', fault: FAULTS.badGateway, is: 'Unavailable', ...busy },
  { name: '503', fault: FAULTS.unavailable, is: 'Unavailable', ...busy },
  { name: '504', fault: FAULTS.timeout, is: 'Unavailable', ...busy },
  {
    name: '504 once it is done',
    fault: { ...FAULTS.timeout, is: 'lost-answer' },
    is: 'Unavailable',
    ...busy,
  },
  { name: '408', fault: refused(408), is: 'Unavailable', ...busy },
  { name: '429', fault: refused(429), is: 'Throttled', ...busy },
  { name: 'a reset before it', fault: { is: 'reset', when: 'before' }, is: 'Unreachable', ...transient },
  { name: 'a reset after it', fault: { is: 'reset', when: 'after' }, is: 'Unreachable', ...transient },
  { name: 'a reset in the body', fault: { is: 'reset', when: 'in-body' }, is: 'Unreachable', ...transient },
  { name: 'no response', fault: { is: 'hang' }, is: 'Unreachable', ...transient },
  {
    name: 'half of the JSON',
    fault: { is: 'truncate' },
    is: 'Malformed',
    but: {
      ...PROBE,
      'deleteDevice at vendor': 'success',
      'revokeKey at vendor': 'success',
      'hasServices at headscale': 'success',
      deleteService: 'success',
    },
  },
  { name: 'values of other types', fault: { is: 'wrong-types' }, is: 'Malformed', but: LENIENT },
  { name: 'no body', fault: FAULTS.empty, is: 'Malformed', but: LENIENT },
  { name: 'HTML', fault: FAULTS.html, is: 'Malformed', but: PROBE },
  { name: 'plain text', fault: FAULTS.plainText, is: 'Malformed', but: PROBE },
  { name: 'a redirect', fault: REDIRECT, is: 'Malformed', but: PROBE },
  {
    name: '400',
    fault: refused(400),
    is: 'Invalid',
    but: { ...PROBE, token: 'CredentialsInvalid', 'token exchange': 'CredentialsInvalid' },
  },
  { name: '401', fault: refused(401), is: 'CredentialsInvalid', but: PROBE },
  { name: '403', fault: refused(403), is: 'ScopeMissing', but: DETECTED },
  {
    name: '404 of an object',
    fault: refused(404),
    is: 'NotFound',
    but: {
      ...DETECTED,
      device: 'success',
      deleteDevice: 'success',
      revokeKey: 'success',
      service: 'success',
      deleteService: 'success',
    },
  },
  { name: '404 of a route', fault: UNKNOWN_ROUTE, is: 'NotSupported', but: DETECTED },
  { name: '405', fault: refused(405), is: 'NotSupported', but: DETECTED },
  { name: '501', fault: refused(501), is: 'NotSupported', but: DETECTED },
  { name: 'another content type', fault: { is: 'content-type', value: 'text/html' }, is: 'success', but: {} },
  { name: 'a late response', fault: { is: 'delay', ms: 2 }, is: 'success', but: {} },
  { name: 'a slow response', fault: { is: 'drip', bytes: 200, everyMs: 1 }, is: 'success', but: {} },
];

/** In the short form, a row is tried at one of the dialects unless it differs between them. */
function isTried(row: Row, { name, dialects }: TestedCall, dialect: Dialect): boolean {
  const differs = dialects.some(each => row.but[`${name} at ${each}`] !== undefined);
  return IS_LONG || differs || dialects[ROWS.indexOf(row) % dialects.length] === dialect;
}

const combinations = CALLS.flatMap(call => call.dialects.map(dialect => ({ call, dialect })));

describe.each(combinations)(
  '16. the call $call.name at $dialect ends as it should with',
  ({ call, dialect }) => {
    const { name } = call;
    // To the simulator of headscale, services are an unknown route.
    const route = name === 'hasServices' && dialect === 'headscale' ? 'unknown' : call.route;
    const needsToken = name !== 'token' && name !== 'token exchange';

    it.each(ROWS.filter(row => isTried(row, call, dialect)))(
      '$name',
      async ({ name: what, fault, is, isTransient = false, but }) => {
        const client = await startClient({ api: { dialect }, scopes: CALL_SCOPES });
        onTestFinished(client.close);
        const { api, clock, tokens, credentials } = client;
        await tokens.use(credentials);
        const token = await tokens.get();
        const send = await call.prepare(client);
        const stepMs = fault.is === 'hang' ? 100 : 5;

        if (isTransient && call.isRetried) {
          api.fail({ routes: [route], fault, times: 1 });
          expect((await outcomeOf(client, send, stepMs)).error).toBeUndefined();
        }

        const before = api.countByRoute()[route] ?? 0;
        const heal = api.fail({ routes: [route], fault });
        const { error, tookMs } = await outcomeOf(client, send, stepMs);
        heal();
        const expected = but[`${name} at ${dialect}`] ?? but[name] ?? is;
        expect(error?.reason ?? 'success').toBe(expected);
        expect(error?.message ?? '').not.toContain(token);
        expect(tookMs).toBeLessThanOrEqual(CALL_BOUND_MS + stepMs);
        if (expected !== 'success') {
          // The second try without a response uses up the time that a call has.
          const tries = fault.is === 'hang' ? 2 : 4;
          const isRenewed = what === '401' && needsToken;
          const sent = isRenewed ? 2 : isTransient && call.isRetried ? tries : 1;
          expect((api.countByRoute()[route] ?? 0) - before).toBe(sent);
        }

        await clock.advance(60_000);
        expect((await outcomeOf(client, send, 5)).error).toBeUndefined();
        api.audit();
      },
    );
  },
);
