import type { Kinds } from '../../api/generated/types.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { placeOf } from '../../api/objects/oldest.ts';
import { beyondTailnet, lineFor, serviceTagNotAllowed } from '../../api/objects/service-tags.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import type { Owner } from './owners.ts';

type MeshTailnet = Kinds['MeshTailnet'];

type TagOptions = {
  readonly tags: readonly string[];
  readonly tailnet: MeshTailnet;
  readonly gateway: Kinds['MeshGateway'] | undefined;
  /** The entry of this installation in the tailnet, if it is for the same object. */
  readonly own: Owner | undefined;
};

/** Those that a service keeps in this version: before there was serviceTags, allowedTags admitted them. */
function keptTags({ tags, tailnet, own }: TagOptions): readonly string[] {
  const { allowedTags = [] } = tailnet.spec;
  return beyondTailnet(tags, tailnet).filter(tag => own?.tags.includes(tag) && allowedTags.includes(tag));
}

/** Those for what a service keeps in this version. */
export function tagWarnings(options: TagOptions): readonly ProblemAt<'MeshEndpoints status.vipServices'>[] {
  const kept = keptTags(options);
  if (kept.length === 0) return [];
  const fix = lineFor(kept, options.tailnet);
  return [{ reason: 'TagNotAllowed', text: 'a later version ends this', fix }];
}

/** Tags decide who reaches a service, and which devices may serve it. */
export function tagProblem(options: TagOptions): VipServiceState | undefined {
  const { tags, tailnet, gateway } = options;
  const kept = keptTags(options);
  const { allowedTags, deniedTags = [] } = gateway?.spec.access ?? {};
  const beyond = beyondTailnet(tags, tailnet).filter(tag => !kept.includes(tag));
  const refused = tags.find(tag => deniedTags.includes(tag) || allowedTags?.includes(tag) === false);
  if (beyond.length > 0) return { ...serviceTagNotAllowed(beyond, tailnet), status: 'Failed' };
  if (refused === undefined || !gateway) return undefined;
  const text = `spec.access of MeshGateway ${placeOf(gateway)} does not allow ${refused}`;
  return { status: 'Failed', reason: 'TagNotAllowed', text, fix: 'use another tag, or allow it there' };
}
