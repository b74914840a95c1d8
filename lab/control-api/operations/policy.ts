import { createHash } from 'node:crypto';
import { Refusal } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { bodyOf } from '../call.ts';
import type { Call } from '../call.ts';
import type { State } from '../state.ts';

/** `GET /tailnet/-/acl`, with its ETag. */
export function getPolicy(state: State): Answer {
  return { status: 200, json: state.policy, headers: { etag: etagOf(state) } };
}

/** `POST /tailnet/-/acl`: the only route that compares an ETag; `ts-default` stands for the policy of a new tailnet. */
export function setPolicy(state: State, call: Call): Answer {
  const expected = call.headers['if-match'];
  const isMet = expected === '"ts-default"' ? state.isDefaultPolicy : expected === etagOf(state);
  if (expected !== undefined && !isMet) throw new Refusal(412, 'precondition failed, invalid old hash');
  state.policy = { tagOwners: {}, ...bodyOf(call) };
  state.isDefaultPolicy = false;
  return getPolicy(state);
}

function etagOf({ policy }: State): string {
  return `"${createHash('sha256').update(JSON.stringify(policy)).digest('hex')}"`;
}
