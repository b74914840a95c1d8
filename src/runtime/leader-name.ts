/** A name that no two processes have, even if they are called the same: 64 bits are added to it. */
export function uniqueName(identity: string, random: () => number): string {
  const half = () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return `${identity}_${half()}${half()}`;
}
