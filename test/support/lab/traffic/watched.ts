import { derivedFrom } from '../../store/traffic.ts';
import { createExtension } from '../../../../src/extension/extension.ts';
import { DEFAULT_GRPC_LIMITS } from '../../../../src/extension/grpc/limits.ts';
import type { Methods } from '../../../../src/extension/grpc/method.ts';
import { startGrpcServer } from '../../../../src/extension/grpc/server.ts';
import { systemClock } from '../../../../src/runtime/clock.ts';
import type { ExtensionBase } from './composed.ts';

/** The hooks that Envoy Gateway calls. */
type Hook = 'PostClusterModify' | 'PostEndpointsModify' | 'PostTranslateModify';

/** A call of a hook. */
export type HookCall = { readonly hook: Hook; readonly request: Uint8Array };

/** An extension server in this process whose hooks are counted and can be held; its EDS is not affected. */
export interface Watched {
  /** As host:port. */
  readonly address: string;
  /** The calls of hooks, in order, answered or not. */
  calls(): readonly HookCall[];
  /** Holds the responses of hooks until the returned function is called. */
  hold(): () => void;
  close(): Promise<void>;
}

/** Starts it on resources. */
export async function startWatched({ operator, telemetry, port }: ExtensionBase): Promise<Watched> {
  const { read } = operator;
  const address = `127.0.0.1:${port}`;
  const options = { dataPath: 'Proxy', edsTarget: address, messageBytes: 1e8 } as const;
  const extension = createExtension({
    ...derivedFrom(read, { edsTarget: address }),
    options,
    telemetry,
    clock: systemClock,
  });
  const watch = new Watch();
  const server = await startGrpcServer({
    address: { host: '127.0.0.1', port },
    methods: watch.over(extension.methods),
    files: extension.files,
    limits: DEFAULT_GRPC_LIMITS,
    telemetry: { ...telemetry, record: telemetry.metrics.record },
    clock: systemClock,
  });
  server.health.set('SERVING');
  return {
    address,
    calls: () => watch.calls,
    hold: () => watch.hold(),
    close: async () => {
      await server.stop({ graceMs: 0 });
      extension.close();
    },
  };
}

const HOOKS = '/envoygateway.extension.EnvoyGatewayExtension/';

class Watch {
  readonly calls: HookCall[] = [];
  #held: Promise<void> | undefined;

  over(methods: Methods): Methods {
    return new Map(
      [...methods].map(([path, method]) => {
        if (method.kind !== 'unary' || !path.startsWith(HOOKS)) return [path, method];
        const hook = path.slice(HOOKS.length) as Hook;
        const call: typeof method.call = async request => {
          const copy = Uint8Array.from(request);
          this.calls.push({ hook, request: copy });
          await this.#held;
          return method.call(copy);
        };
        return [path, { ...method, call }];
      }),
    );
  }

  hold(): () => void {
    let release = () => {};
    this.#held = new Promise(resolve => (release = resolve));
    return () => {
      this.#held = undefined;
      release();
    };
  }
}
