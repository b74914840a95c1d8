/** An object that something happened to, of any kind. */
type Regarding = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
};

/** Something that happened and that people should find beside the object. */
export type Told = {
  readonly regarding: Regarding;
  readonly type: 'Normal' | 'Warning';
  /** Why, as one word for machines: LeaderElected. */
  readonly reason: string;
  /** What was done or tried, as one word: Elect. */
  readonly action: string;
  /** For people; never a secret. */
  readonly note: string;
};

/** Where what happens is told. It never fails and nobody waits for it: what cannot be told in time is counted and lost. */
export interface TellEvents {
  tell(told: Told): void;
}
