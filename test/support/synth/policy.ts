import type { KubeObject } from '../../../lab/kube/object.ts';
import { at, containersOf, podOf, put, workloads } from './parts.ts';

/** A policy of an installation: a title, what violates it, and a change that would. */
export type Policy = {
  readonly sentence: string;
  readonly violations: (objects: readonly KubeObject[]) => readonly string[];
  /** Changes valid objects so that some violate it. */
  readonly violate: (objects: readonly KubeObject[]) => void;
};

/** A violation: the value at this path becomes another. */
type Violation = readonly [way: readonly (string | number)[], value?: unknown];

type IsRight = (one: unknown, object: KubeObject, all: readonly KubeObject[]) => boolean;

/** The subjects of a policy. */
type Subjects = (
  objects: readonly KubeObject[],
) => readonly { readonly object: KubeObject; readonly one: unknown }[];

const pods: Subjects = objects => workloads(objects).map(object => ({ object, one: podOf(object) }));

const containers: Subjects = objects =>
  workloads(objects).flatMap(object => containersOf(object).map(one => ({ object, one })));

const objectsOf =
  (kinds: readonly string[]): Subjects =>
  objects =>
    objects
      .filter(({ kind }) => kinds.length === 0 || kinds.includes(kind))
      .map(object => ({ object, one: object }));

function about(subjects: Subjects, sentence: string, isRight: IsRight, [way, value]: Violation): Policy {
  return {
    sentence,
    violations: objects =>
      subjects(objects)
        .filter(({ object, one }) => !isRight(one, object, objects))
        .map(({ object }) => `${object.kind} ${object.metadata.name ?? ''}`),
    violate: objects => {
      for (const { one } of subjects(objects)) if (at(one, ...way.slice(0, -1))) put(one, way, value);
    },
  };
}

/** A policy about every pod. */
export const ofPods = (sentence: string, isRight: IsRight, spoilt: Violation) =>
  about(pods, sentence, isRight, spoilt);

/** A policy about every container. */
export const ofContainers = (sentence: string, isRight: IsRight, spoilt: Violation) =>
  about(containers, sentence, isRight, spoilt);

/** A policy about every object of some kinds; of all if none is named. */
export const ofKinds = (kinds: readonly string[], sentence: string, isRight: IsRight, spoilt: Violation) =>
  about(objectsOf(kinds), sentence, isRight, spoilt);
