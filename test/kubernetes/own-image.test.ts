import { expect, it } from 'vitest';
import { readOwnImage } from '../../src/kubernetes/own-image.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeRequest } from '../../src/kubernetes/transport/transport.ts';

/** An image that is read from a server that gives one response after the other, and the retries that are due. */
function readFrom(...responses: readonly unknown[]) {
  const requests: KubeRequest[] = [];
  const due = new Set<() => void>();
  const waitedMs: number[] = [];
  const warnings: string[] = [];
  const send = async (request: KubeRequest): Promise<unknown> => {
    const response = responses[requests.push(request) - 1];
    await Promise.resolve();
    if (response instanceof Error) throw response;
    return response;
  };
  const clock = {
    now: () => 0,
    soon: (call: () => void) => call(),
    after: (ms: number, call: () => void) => {
      waitedMs.push(ms);
      due.add(call);
      return () => void due.delete(call);
    },
  };
  const image = readOwnImage({
    ...{ transport: { send }, namespace: 'mesh-system', podName: 'mesh-operator-1', container: 'manager' },
    ...{ clock, log: { warn: (message: string) => void warnings.push(message) } },
  });
  const settled = () => new Promise(resolve => void setImmediate(resolve));
  return { image, requests, due, waitedMs, warnings, settled };
}

const containers = [
  { name: 'sidecar', image: 'sidecar:1' },
  { name: 'manager', image: 'mesh-gateway:1.2.3' },
];

it('the image is that of the container of the operator in its own pod', async () => {
  const { image, requests, settled } = readFrom({ items: [{ spec: { containers } }] });
  expect(image.current()).toBeUndefined();
  await settled();
  expect(image.current()).toEqual({ image: 'mesh-gateway:1.2.3' });
  expect(requests).toEqual([
    {
      verb: 'list',
      path: '/api/v1/namespaces/mesh-system/pods',
      query: { fieldSelector: 'metadata.name=mesh-operator-1' },
    },
  ]);
});

it.each([{ items: [] }, { items: [{ spec: {} }] }, {}, null])('there is none in %j', async response => {
  const { image, settled } = readFrom(response);
  await settled();
  expect(image.current()).toEqual({ image: undefined });
});

it('is read again while the API server does not answer, until that is stopped', async () => {
  const away = new KubeError('Forbidden', 'forbidden', { status: 403 });
  const { image, due, waitedMs, warnings, settled } = readFrom(...Array.from({ length: 7 }, () => away), {
    items: [{ spec: { containers } }],
  });
  for (let time = 0; time < 7; time++) {
    await settled();
    expect(image.current()).toBeUndefined();
    const [retry] = due;
    due.clear();
    retry?.();
  }
  await settled();
  expect(image.current()).toEqual({ image: 'mesh-gateway:1.2.3' });
  expect(waitedMs).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  expect(warnings).toEqual(['the image of the own pod cannot be read']);
  const stopped = readFrom(away);
  await stopped.settled();
  stopped.image.stop();
  expect(stopped.due.size).toBe(0);
});

it('that cannot be read is logged again for another reason', async () => {
  const denied = new KubeError('Forbidden', 'forbidden', { status: 403 });
  const away = new KubeError('Unreachable', 'away');
  const { due, warnings, settled } = readFrom(denied, away, away, denied);
  for (let time = 0; time < 4; time++) {
    await settled();
    const [retry] = due;
    due.clear();
    retry?.();
  }
  expect(warnings).toHaveLength(3);
});
