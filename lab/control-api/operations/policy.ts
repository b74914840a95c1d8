import { createHash } from 'node:crypto';
import { Refusal } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { bodyOf } from '../call.ts';
import type { Call } from '../call.ts';
import type { Policy, State } from '../state.ts';

/** `GET /tailnet/-/acl`, with its ETag. */
export function getPolicy(state: State): Answer {
  return { status: 200, json: state.policy, headers: { etag: etagOf(state) } };
}

/** `POST /tailnet/-/acl`: the only route that compares an ETag; `ts-default` stands for the policy of a new tailnet. */
export function setPolicy(state: State, call: Call): Answer {
  const expected = call.headers['if-match'];
  const isMet = expected === '"ts-default"' ? state.isDefaultPolicy : expected === etagOf(state);
  if (expected !== undefined && !isMet) throw new Refusal(412, 'precondition failed, invalid old hash');
  const policy: Policy = { tagOwners: {}, ...bodyOf(call) };
  expectPolicy(policy, state);
  state.policy = policy;
  state.isDefaultPolicy = false;
  return getPolicy(state);
}

/** Refuses what headscale does: other owners than users, groups and tags, and tags without an entry in tagOwners. */
export function expectPolicy({ tagOwners, grants = [] }: Policy, { dialect }: Pick<State, 'dialect'>): void {
  if (dialect !== 'headscale') return;
  const owners = Object.values(tagOwners).flat();
  const invalid = owners.find(owner => !/@|^(?:group|tag):/.test(owner));
  if (invalid !== undefined) throw new Refusal(400, `invalid owner format: ${JSON.stringify(invalid)}`);
  const named = [...owners, ...grants.flatMap(({ src, dst }) => [...src, ...dst])];
  const unknown = named.find(name => name.startsWith('tag:') && tagOwners[name] === undefined);
  if (unknown !== undefined) throw new Refusal(400, `tag not found: ${JSON.stringify(unknown)}`);
}

function etagOf({ policy }: State): string {
  return `"${createHash('sha256').update(JSON.stringify(policy)).digest('hex')}"`;
}
