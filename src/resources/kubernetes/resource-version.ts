/** A version that counts; others only differ. */
const NUMBER = /^(?:0|[1-9]\d*)$/;

/** Whether one version of objects of a kind is known to be older than another: where they are no numbers, none is. */
export function isOlder(version: string, than: string): boolean {
  if (!NUMBER.test(version) || !NUMBER.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}
