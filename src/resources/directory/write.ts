import { keyOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/references.ts';
import type { DirectoryState } from './state.ts';
import { begin, revise, uidOf, vanish, withFinalizer, withoutFinalizer, withStatus } from '../lifecycle.ts';
import type { Given, Kept } from '../lifecycle.ts';
import { judged } from '../judged.ts';
import { ResourceError } from '../resources.ts';
import type { OwnResource, WriteResources } from '../resources.ts';

/** Writes into the state alone: what users wrote is never touched, and what is only ours never becomes a file. */
export function writesTo(state: DirectoryState, given: Given, defaultNamespace: string): WriteResources {
  const change = (object: OwnResource, step: (kept: Kept) => Kept | undefined) =>
    state.write(keyOf(refTo(object)), kept => step(sameAs(object, kept)));
  return {
    replaceStatus: (object, status) => change(object, kept => withStatus(kept, object, status)),
    addFinalizer: (object, finalizer) => change(object, kept => withFinalizer(kept, finalizer)),
    removeFinalizer: (object, finalizer) => change(object, kept => withoutFinalizer(kept, finalizer)),
    apply: async object => {
      const said = { object: judged(object, defaultNamespace), from: { by: 'us' } } as const;
      const ref = refTo(said.object);
      await state.write(keyOf(ref), kept => (kept ? revise(ours(ref, kept), said) : begin(said, given)));
    },
    remove: ref => state.write(keyOf(ref), kept => kept && vanish(ours(ref, kept), given)),
  };
}

function sameAs(object: OwnResource, kept: Kept | undefined): Kept {
  if (kept && uidOf(kept) === object.metadata.uid) return kept;
  throw new ResourceError('Gone', `${keyOf(refTo(object))} is not there any more`);
}

function ours(ref: Ref, kept: Kept): Kept {
  if (kept.from.by === 'us') return kept;
  throw new ResourceError('Refused', `${keyOf(ref)} is defined in ${kept.from.file}, which is not ours`);
}
