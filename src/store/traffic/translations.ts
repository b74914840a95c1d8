import type { Kinds } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import type { Revision } from '../../traffic/settings/revision.ts';
import { firstGenerationOf, translatedGeneration } from '../../traffic/translation-report.ts';

type MeshBinding = Kinds['MeshBinding'];

/** The revisions that the MeshBinding of a Gateway has had, as far as this process knows them. */
type Known = {
  uid: string | undefined;
  /** By their hashes, the last ones that were written. */
  readonly written: Map<string, Revision>;
  /** The generations since which it had them, in order; undefined is one of an earlier process. */
  readonly had: { readonly since: number; revision: Revision | undefined }[];
};

/** Envoy Gateway may be behind by as many. */
const MAX_REVISIONS = 8;

/**
 * Which revisions Envoy Gateway has translated. While others change a Gateway all the time, its report is never about the present
 * one: then an earlier one counts that has the settings in question.
 */
export class Translations {
  readonly #gateways = new Map<Key, Known>();

  /** Keeps a revision that a MeshBinding has, or is about to get. */
  note(gateway: Key, revision: Revision): void {
    const { written } = this.#knownOf(gateway);
    written.delete(revision.hash);
    written.set(revision.hash, revision);
    for (const hash of [...written.keys()].slice(0, -MAX_REVISIONS)) written.delete(hash);
  }

  forget(gateway: Key): void {
    this.#gateways.delete(gateway);
  }

  /** The last revision that Envoy Gateway has reported as translated; undefined where it is not known. */
  last(gateway: Ref<'Gateway'>, binding: MeshBinding, present: Revision | undefined): Revision | undefined {
    const known = this.#knownOf(keyOf(gateway));
    const { spec, metadata } = binding;
    if (known.uid !== metadata.uid) known.had.length = 0;
    known.uid = metadata.uid;
    const revision = present?.hash === spec.revision ? present : known.written.get(spec.revision);
    const since = firstGenerationOf(binding);
    const newest = known.had.at(-1);
    if (newest?.since === since) newest.revision ??= revision;
    else known.had.push({ since, revision });
    known.had.splice(0, known.had.length - MAX_REVISIONS);
    const translated = translatedGeneration(gateway, binding);
    return known.had.filter(each => each.since <= translated).at(-1)?.revision;
  }

  #knownOf(gateway: Key): Known {
    const known = this.#gateways.get(gateway) ?? { uid: undefined, written: new Map(), had: [] };
    this.#gateways.set(gateway, known);
    return known;
  }
}
