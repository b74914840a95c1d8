/** A place in a schema file: the file's name and a JSON pointer into it. */
export type Place = { readonly file: string; readonly pointer: string };

/** The place one or more steps below another. */
export function below(place: Place, ...steps: readonly (string | number)[]): Place {
  const escaped = steps.map(step => '/' + String(step).replaceAll('~', '~0').replaceAll('/', '~1'));
  return { file: place.file, pointer: place.pointer + escaped.join('') };
}

/** A schema that a later phase cannot express; the message names the place and what to change. */
export class Refusal extends Error {
  readonly place: Place;

  constructor(place: Place, why: string) {
    super(`schema/${place.file}#${place.pointer}: ${why}`);
    this.name = 'Refusal';
    this.place = place;
  }
}
