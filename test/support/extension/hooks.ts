import { create, toBinary } from '@bufbuild/protobuf';
import type { Bytes, Unary } from '../../../src/extension/grpc/method.ts';
import { hookMethods } from '../../../src/extension/hooks/methods.ts';
import type { HookDeps } from '../../../src/extension/hooks/methods.ts';
import { PostTranslateModifyRequestSchema } from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** What was told by hooks: failures and clusters by hook, and lines of the log. */
type Told = {
  readonly failures: string[];
  readonly served: string[];
  readonly lines: [string, object][];
};

/** The hooks over needs and assignments that a test states. */
export type TestHooks = {
  readonly call: (method: string, request: Uint8Array) => Bytes | Promise<Bytes>;
  readonly told: Told;
  /** How waits for a revision ended. */
  readonly waits: readonly string[];
  readonly clock: VirtualClock;
};

export function startHooks(parts: Partial<HookDeps> = {}): TestHooks {
  const told: Told = { failures: [], served: [], lines: [] };
  const waits: string[] = [];
  const clock = new VirtualClock();
  const line = (message: string, fields: object = {}) => void told.lines.push([message, fields]);
  const log = { debug: line, info: line, warn: line, error: line, child: () => log };
  const methods = hookMethods({
    settingsOf: () => undefined,
    revisions: { revisionOf: () => '1', onChange: () => () => undefined },
    edsTarget: '127.0.0.1:5005',
    messageBytes: 100_000_000,
    clock,
    telemetry: {
      log,
      record: {
        hookFailures: ({ hook }) => void told.failures.push(hook),
        meshClusters: ({ hook }, clusters = 1) =>
          void told.served.push(...Array<string>(clusters).fill(hook)),
        revisionWaits: ({ end }) => void waits.push(end),
        edsPushes: () => undefined,
        edsAnswers: () => undefined,
        edsPushSeconds: () => undefined,
      },
    },
    ...parts,
  });
  const call = (method: string, request: Uint8Array) => {
    const found = methods.get(`/envoygateway.extension.EnvoyGatewayExtension/${method}`);
    if (found?.is !== 'unary') throw new Error(`no hook is called ${method}`);
    return (found satisfies Unary).call(request);
  };
  return { call, told, waits, clock };
}

/** An answer that was there at once, as one. */
export function whole(answer: Bytes | Promise<Bytes>): Uint8Array {
  if (answer instanceof Promise) throw new Error('the answer was not there at once');
  return answer instanceof Uint8Array ? answer : concat(answer);
}

/** A request about one message, with an object beside it as Envoy Gateway sends one. */
export function about(message: Uint8Array): Uint8Array {
  const object = bytesField(1, Buffer.from('{"kind":"MeshEndpoints"}'));
  return concat([bytesField(1, message), bytesField(2, bytesField(1, object))]);
}

/** A request about everything of a Gateway, with objects beside it. */
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

/** A MeshBinding as Envoy Gateway sends it. */
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
