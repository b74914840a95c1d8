/** Why something cannot be read, in few words and without its whole path. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? (code || String(error));
}

const REASONS: Readonly<Partial<Record<string, string>>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its links go in a circle',
  ENAMETOOLONG: 'its name is too long',
  EIO: 'the disk gave an error',
  ESTALE: 'the file system lost it',
  EMFILE: 'too many files are open in this process',
  ENFILE: 'too many files are open on this machine',
  ENOTDIR: 'it is not a folder',
};

/** Whether something is not there, or no longer. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** For the end of a promise: nothing where something is not there. */
export function noneIfMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}
