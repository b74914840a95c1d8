/** Something that happened to an object of any kind, and that people should find beside it. */
export type ObjectEvent = {
  readonly regarding: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name: string;
    readonly uid?: string;
  };
  readonly type: 'Normal' | 'Warning';
  /** Why, as one word for machines: LeaderElected. */
  readonly reason: string;
  /** What was done or tried, as one word: Elect. */
  readonly action: string;
  /** For people; never a secret. */
  readonly note: string;
};

/** Records events. It never fails or blocks: what cannot be written is counted and dropped. */
export interface RecordEvents {
  record(event: ObjectEvent): void;
}
