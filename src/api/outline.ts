/** Which fields a value has and what is right in each: the part of a schema that explanations and lint need. */
export type Outline = {
  readonly is: 'text' | 'date-time' | 'integer' | 'boolean' | 'int-or-string' | 'list' | 'map' | 'object';
  /** What a right value is, as a noun: "a port (1 to 65535)". */
  readonly expect?: string;
  /** The value may be a secret and is never shown. */
  readonly isSensitive?: true;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly items?: Outline;
  readonly values?: Outline;
  readonly fields?: Readonly<Record<string, Outline>>;
  /** Fields that may be there and are dropped without a word. */
  readonly ignored?: readonly string[];
};
