import { expect } from 'vitest';

type Labels = Readonly<Record<string, string>>;

/** One object that is applied with various labels. */
export type AppliedObject = {
  readonly apply: (labels: Labels) => Promise<void>;
  /** Returns its metadata once all earlier writes can be read. */
  readonly metadata: () => Promise<object>;
};

type Case = (object: AppliedObject) => Promise<void>;

/** The contract of everything that applies objects that we own. The object does not exist yet. */
const cases: Readonly<Record<string, Case>> = {
  'creates an object that is applied': async ({ apply, metadata }) => {
    await apply({ a: 'b' });
    expect(await metadata()).toMatchObject({ labels: { a: 'b' }, uid: expect.stringMatching(/./) as string });
  },

  'keeps the version of an object that is applied unchanged': async ({ apply, metadata }) => {
    await apply({ a: 'b' });
    const first = await metadata();
    await apply({ a: 'b' });
    expect(await metadata()).toEqual(first);
  },

  'replaces the fields that were applied before': async ({ apply, metadata }) => {
    await apply({ a: 'b', c: 'd' });
    const { uid } = (await metadata()) as { readonly uid: string };
    await apply({ a: 'e' });
    const next = await metadata();
    expect(next).toMatchObject({ labels: { a: 'e' }, uid });
    expect(next).not.toHaveProperty('labels.c');
  },
};

/** The cases as a contract has them that makes the object from its own subject. */
export function applyCases<T>(objectOf: (subject: T) => AppliedObject) {
  const entries = Object.entries(cases).map(([sentence, expectOf]) => {
    const run = (subject: T) => expectOf(objectOf(subject));
    return [sentence, run] as const;
  });
  return Object.fromEntries(entries);
}
