import type { Activities } from '../../telemetry/activity.ts';
import type { Log } from '../../telemetry/log.ts';
import type { grpcMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/recorder.ts';
import type { Call } from './call.ts';

/** To whom the server tells what it does. */
export type GrpcTelemetry = {
  readonly log: Log;
  readonly record: Recorder<typeof grpcMetrics>;
  readonly activities: Activities;
};

/** Records that a call has ended, and how. */
export function recordCall(record: GrpcTelemetry['record'], call: Call, now: number): void {
  const labels = { method: call.path, code: call.code };
  record.grpcRequests(labels);
  record.grpcSeconds(labels, (now - call.startedAt) / 1000);
  if (call.code !== 'OK') record.grpcErrors(labels);
}
