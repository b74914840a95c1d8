import { WorkloadError } from './workloads.ts';

/** All failures as one: what must be changed by somebody counts more than what may work later. */
export function joinedFailure(failures: readonly unknown[]): unknown {
  const known = failures.filter(failure => failure instanceof WorkloadError);
  if (known.length < failures.length) return failures.find(failure => !(failure instanceof WorkloadError));
  const reason = known.some(failure => failure.reason === 'Refused') ? 'Refused' : 'Unavailable';
  const message = known.map(failure => failure.message).join('; ');
  return new WorkloadError(reason, message, { cause: known[0] });
}
