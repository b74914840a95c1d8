import { inSeconds } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { isRecord, jsonObjectIn } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import type { VipService } from '../../control/control.ts';

/*
 * A VIP service has no owner in the control API, and no version to compare. So each installation that offers it has an entry in
 * an annotation of the service, which all of them read, change and write:
 *
 *   GROUP/owners: {"owners":[{"installation":"0a1b2c3d","cluster":"...","object":"default/web","strategy":"shared",
 *                  "ports":["tcp:443"],"tags":["tag:mesh"],"shareWith":["4e5f6a7b/default"],
 *                  "heartbeat":"2026-01-15T12:00:00Z"}]}
 */

/** The annotation of a VIP service with its owners. */
export const OWNERS = `${GROUP}/owners`;

/** The most owners of a service: one with more is written by no installation. */
export const MAX_OWNERS = 64;

/** The most bytes of their annotation. */
const MAX_BYTES = 16_384;

/** The annotation of the vendor's operator, whose services are its own. */
const VENDOR_OWNERS = 'tailscale.com/owner-references';

export type Strategy = 'shared' | 'isolated';

/** An installation that offers a VIP service. */
export type Owner = {
  /** Its id, which is also at the end of the hostnames of its mesh pods. */
  readonly installation: string;
  /** The name of its cluster, for people. */
  readonly cluster: string;
  /** Its MeshEndpoints, as in `default/web`. */
  readonly object: string;
  /** `isolated` admits no other owner. */
  readonly strategy: Strategy;
  /** What it wants the service to have; the service has what all owners want. */
  readonly ports: readonly string[];
  readonly tags: readonly string[];
  /** Who may join it: `installation`, `installation/namespace` or `installation/namespace/name`; earlier versions write none. */
  readonly shareWith?: readonly string[];
  /** When it last wrote, by its clock. */
  readonly heartbeat: Date;
  /** Since when it removes the service, by its clock. */
  readonly leaving?: Date;
  /** What a newer version of mesh-gateway has written beside it. */
  readonly more?: Fields;
};

/** The owners of a VIP service. */
export type Ownership =
  /** It was created by someone else. */
  | { readonly is: 'foreign'; readonly why: string | undefined }
  | {
      readonly is: 'owned';
      readonly owners: readonly Owner[];
      /** It existed before, so that only its owners are removed from it. */
      readonly isAdopted: boolean;
    };

/** Reads who owns a VIP service. Others may write anything there, so that what cannot be read is foreign. */
export function ownershipOf({ annotations }: Pick<VipService, 'annotations'>): Ownership {
  if (annotations[VENDOR_OWNERS] !== undefined) {
    return { is: 'foreign', why: "the vendor's operator owns it" };
  }
  const text = annotations[OWNERS];
  if (text === undefined) return { is: 'foreign', why: undefined };
  if (Buffer.byteLength(text) > MAX_BYTES) return tooLong();
  const body = jsonObjectIn(text);
  const list = body?.['owners'];
  if (Array.isArray(list) && list.length > MAX_OWNERS) return tooLong();
  const owners = Array.isArray(list) ? list.map(ownerIn) : [undefined];
  if (owners.some(owner => owner === undefined)) {
    return { is: 'foreign', why: `its annotation ${OWNERS} cannot be read` };
  }
  return { is: 'owned', owners: owners as readonly Owner[], isAdopted: body?.['adopted'] === true };
}

function tooLong(): Ownership {
  return { is: 'foreign', why: `its annotation ${OWNERS} has more than ${MAX_OWNERS} owners or 16 KB` };
}

/** Whether a service may have these annotations. */
export function mayHave(annotations: VipService['annotations']): boolean {
  return ownershipOf({ annotations }).is === 'owned';
}

/** The owners of a VIP service; none of one that does not exist, or that someone else created. */
export function ownersOf(service: Pick<VipService, 'annotations'> | undefined): readonly Owner[] {
  const ownership = service && ownershipOf(service);
  return ownership?.is === 'owned' ? ownership.owners : [];
}

function ownerIn(value: unknown): Owner | undefined {
  if (!isRecord(value)) return undefined;
  const { installation, cluster, object, strategy, ports, tags, shareWith, heartbeat, leaving, ...more } =
    value;
  const texts = [installation, cluster, object];
  if (!texts.every(text => typeof text === 'string') || !isTexts(ports) || !isTexts(tags)) return undefined;
  const at = dateIn(heartbeat);
  const since = leaving === undefined ? undefined : dateIn(leaving);
  if (!at || (leaving !== undefined && !since)) return undefined;
  return {
    installation: String(installation),
    cluster: String(cluster),
    object: String(object),
    strategy: strategy === 'isolated' ? 'isolated' : 'shared',
    ports,
    tags,
    ...(isTexts(shareWith) && { shareWith }),
    heartbeat: at,
    ...(since && { leaving: since }),
    ...(Object.keys(more).length > 0 && { more }),
  };
}

/** A MeshEndpoints of an installation. */
type Place = Pick<Owner, 'installation' | 'object'>;

/** Whether an owner shares its service with a MeshEndpoints of another installation. */
export function sharesWith({ strategy, shareWith = [] }: Owner, { installation, object }: Place): boolean {
  const [namespace] = object.split('/', 1);
  const names = [installation, `${installation}/${namespace}`, `${installation}/${object}`];
  return strategy === 'shared' && names.some(name => shareWith.includes(name));
}

/** The owners of a service that none of its others shares it with, but for the first: earlier versions let them join. */
export function unsharedOf(owners: readonly Owner[]): readonly Owner[] {
  const active = owners.filter(({ leaving }) => !leaving);
  return active.slice(1).filter(owner => !active.some(other => other !== owner && sharesWith(other, owner)));
}

/** What the owner of a service has to add, so that a MeshEndpoints of another installation may join it. */
export function shareLine({ installation, object }: Place): string {
  const [namespace] = object.split('/', 1);
  return `shareWith: ${JSON.stringify([{ installation, namespace }])}`;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string');
}

function dateIn(value: unknown): Date | undefined {
  const date = new Date(typeof value === 'string' ? value : NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** The annotations of a service with these owners; without any of them, those of a service that was adopted. */
export function withOwners(
  annotations: VipService['annotations'],
  owners: readonly Owner[],
  isAdopted: boolean,
): VipService['annotations'] {
  const { [OWNERS]: _before, ...others } = annotations;
  if (owners.length === 0 && isAdopted) return others;
  const list = owners.map(({ more, heartbeat, leaving, ...owner }) => ({
    ...owner,
    heartbeat: inSeconds(heartbeat),
    ...(leaving && { leaving: inSeconds(leaving) }),
    ...more,
  }));
  return { ...others, [OWNERS]: JSON.stringify({ ...(isAdopted && { adopted: true }), owners: list }) };
}
