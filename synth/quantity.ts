import type { Installation } from './generated/types.ts';

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** The number that a valid quantity of Kubernetes stands for. */
function amountOf(quantity: string): number {
  const [, number = '', unit = ''] = /^([0-9]+)([A-Za-z]*)$/.exec(quantity) ?? [];
  return Number(number) * (UNITS[unit] ?? NaN);
}

/** The requests that are above their limits: the API server would accept the Deployment and refuse its pods. */
export function excessiveRequests(installation: Installation): readonly string[] {
  return (['operator', 'extensionServer', 'meshPods'] as const).flatMap(process => {
    const { requests, limits } = installation[process].resources;
    return (['cpu', 'memory'] as const)
      .filter(resource => amountOf(requests[resource]) > amountOf(limits[resource]))
      .map(
        resource =>
          `${process}.resources.requests.${resource}: ${requests[resource]} is more than the limit of ${limits[resource]}`,
      );
  });
}
