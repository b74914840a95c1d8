import { create, toBinary } from '@bufbuild/protobuf';
import type { Bytes, Unary } from '../../../src/extension/grpc/method.ts';
import { hookMethods } from '../../../src/extension/hooks/methods.ts';
import type { HookDeps } from '../../../src/extension/hooks/methods.ts';
import { PostTranslateModifyRequestSchema } from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** What hooks recorded: failures and mesh clusters by hook, and log lines. */
type Recorded = {
  readonly failures: string[];
  readonly clusters: string[];
  readonly lines: [string, object][];
};

/** Hooks over settings that a test provides. */
export type TestHooks = {
  readonly call: (method: string, request: Uint8Array) => Bytes | Promise<Bytes>;
  readonly recorded: Recorded;
  /** How waits for a revision ended. */
  readonly waits: readonly string[];
  readonly clock: VirtualClock;
};

export function startHooks(deps: Partial<HookDeps> = {}): TestHooks {
  const recorded: Recorded = { failures: [], clusters: [], lines: [] };
  const waits: string[] = [];
  const clock = new VirtualClock();
  const line = (message: string, fields: object = {}) => void recorded.lines.push([message, fields]);
  const log = { debug: line, info: line, warn: line, error: line, child: () => log };
  const methods = hookMethods({
    settingsOf: () => undefined,
    sharesOf: () => undefined,
    isProxied: () => false,
    revisions: { revisionOf: () => '1', onChange: () => () => undefined },
    edsTarget: '127.0.0.1:5005',
    messageBytes: 100_000_000,
    clock,
    telemetry: {
      log,
      record: {
        hookFailures: ({ hook }) => void recorded.failures.push(hook),
        meshClusters: ({ hook }, clusters = 1) =>
          void recorded.clusters.push(...Array<string>(clusters).fill(hook)),
        revisionWaits: ({ end }) => void waits.push(end),
        edsPushes: () => undefined,
        edsAnswers: () => undefined,
        edsPushSeconds: () => undefined,
      },
    },
    ...deps,
  });
  const call = (method: string, request: Uint8Array) => {
    const found = methods.get(`/envoygateway.extension.EnvoyGatewayExtension/${method}`);
    if (found?.kind !== 'unary') throw new Error(`no hook is called ${method}`);
    return (found satisfies Unary).call(request);
  };
  return { call, recorded, waits, clock };
}

/** A synchronous response, as one byte array. */
export function whole(answer: Bytes | Promise<Bytes>): Uint8Array {
  if (answer instanceof Promise) throw new Error('the response was not synchronous');
  return answer instanceof Uint8Array ? answer : concat(answer);
}

/** A request about one message, with an object in its context. */
export function about(message: Uint8Array): Uint8Array {
  const object = bytesField(1, Buffer.from('{"kind":"MeshEndpoints"}'));
  return concat([bytesField(1, message), bytesField(2, bytesField(1, object))]);
}

/** A Translation request, with objects in its context. */
export function translation(
  lists: { readonly [K in 'clusters' | 'secrets' | 'listeners' | 'routes']?: readonly Uint8Array[] },
  objects: readonly unknown[] = [],
): Uint8Array {
  const extensionResources = objects.map(object => ({
    unstructuredBytes: Buffer.from(JSON.stringify(object)),
  }));
  const given = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, [...list]]));
  return toBinary(
    PostTranslateModifyRequestSchema,
    create(PostTranslateModifyRequestSchema, { postTranslateContext: { extensionResources }, ...given }),
  );
}

/** A MeshBinding in the context of a request. */
export function bindingObject(revision: string, gateway = 'web'): object {
  return {
    apiVersion: 'mesh-gateway.dev/v1alpha1',
    kind: 'MeshBinding',
    metadata: { namespace: 'edge', name: gateway },
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: gateway }],
      revision,
      attempt: 1,
    },
  };
}
