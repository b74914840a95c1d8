import type { Exposition } from './registry.ts';
import type { Route } from './route.ts';

/** Where Prometheus reads the metrics. */
export function metricsRoutes(metrics: Exposition): readonly Route[] {
  const answer: Route['answer'] = async () => ({
    status: 200,
    type: metrics.contentType,
    body: await metrics.text(),
  });
  return [{ path: '/metrics', answer }];
}
