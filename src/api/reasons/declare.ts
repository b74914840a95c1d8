/** How much a problem matters: what it is about does not work, may not, or does; or that is not known. */
export type Severity = 'error' | 'warning' | 'note' | 'unknown';

/** A reason at one place: how much it matters there, what it means, and what to do, as the page of reasons has them. */
export type Declaration = { readonly severity: Severity; readonly means: string; readonly fix?: string };

/** Declares a reason for which something does not work. */
export const error = declares('error');

/** Declares a reason for which something may not work. */
export const warning = declares('warning');

/** Declares a reason for which something works. */
export const note = declares('note');

/** Declares a reason for which it is not known whether something works. */
export const unknown = declares('unknown');

function declares(severity: Severity) {
  return (means: string, fix?: string): Declaration =>
    fix === undefined ? { severity, means } : { severity, means, fix };
}
