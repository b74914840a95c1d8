import { fieldOf } from './field.ts';
import type { Field } from './field.ts';
import { STATIC_TABLE } from './static-table.ts';

/** How large a table may be where nobody has said otherwise. */
export const TABLE_BYTES = 4096;

const STATIC_FIELDS = STATIC_TABLE.map(([name, value]) => fieldOf(name, value));

/** The fields that have an index: those of everybody, and behind them those that have come, the newest first. */
export class FieldTable {
  readonly #fields: Field[] = [];
  #size = 0;
  #most = TABLE_BYTES;

  /** The field at an index; undefined where there is none. */
  at(index: number): Field | undefined {
    if (index <= STATIC_FIELDS.length) return STATIC_FIELDS[index - 1];
    return this.#fields[this.#fields.length + STATIC_FIELDS.length - index];
  }

  /** Adds a field; old ones make room for it, and one that is larger than the table leaves it empty. */
  add(field: Field): void {
    this.#shrink(this.#most - field.size);
    if (field.size > this.#most) return;
    this.#fields.push(field);
    this.#size += field.size;
  }

  /** Makes the table smaller or larger. */
  resize(most: number): void {
    this.#most = most;
    this.#shrink(most);
  }

  #shrink(most: number): void {
    while (this.#size > most) {
      const oldest = this.#fields.shift();
      if (!oldest) return;
      this.#size -= oldest.size;
    }
  }
}
