import { derivedFrom } from '../../../store/traffic.ts';
import { createExtension } from '../../../../../src/extension/extension.ts';
import { trafficIndexes } from '../../../../../src/store/traffic/resources.ts';
import { DEFAULT_GRPC_LIMITS } from '../../../../../src/extension/grpc/limits.ts';
import type { Bytes, Methods } from '../../../../../src/extension/grpc/method.ts';
import { startGrpcServer } from '../../../../../src/extension/grpc/server.ts';
import { startTelemetry } from '../../../../../src/process/telemetry.ts';
import { openDirectory } from '../../../../../src/files/directory.ts';
import type { Directory } from '../../../../../src/files/directory.ts';
import { systemClock } from '../../../../../src/runtime/clock.ts';

/** One call of a hook: the name of its method, request and response. */
export type HookCall = { readonly hook: string; readonly request: Uint8Array; readonly answer: Uint8Array };

/** An extension server in this process that records every call of its hooks. */
export interface Recorded {
  /** As host:port. */
  readonly address: string;
  readonly calls: readonly HookCall[];
  /** Calls a hook again with a request, without the network. */
  again(call: HookCall): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Starts it on a folder of objects, on a free port. */
export async function startRecorded(folder: string, port: number): Promise<Recorded> {
  const telemetry = await quietTelemetry();
  const directory = await openSynced(folder);
  const address = `127.0.0.1:${port}`;
  const extension = createExtension({
    ...derivedFrom(directory.read, { edsTarget: address }),
    options: { dataPath: 'Proxy', edsTarget: address, messageBytes: 1e8 },
    telemetry,
    clock: systemClock,
  });
  const calls: HookCall[] = [];
  const server = await startGrpcServer({
    address: { host: '127.0.0.1', port },
    methods: recording(extension.methods, calls),
    files: extension.files,
    limits: DEFAULT_GRPC_LIMITS,
    telemetry: { ...telemetry, record: telemetry.metrics.record },
    clock: systemClock,
  });
  server.health.set('SERVING');
  return {
    address,
    calls,
    again: async ({ hook, request }) => {
      const method = extension.methods.get(`${HOOKS}${hook}`);
      if (method?.kind !== 'unary') throw new Error(`there is no hook ${hook}`);
      return whole(await method.call(request));
    },
    close: async () => {
      await server.stop({ graceMs: 0 });
      extension.close();
      await directory.close();
      await telemetry.close();
    },
  };
}

function quietTelemetry(): ReturnType<typeof startTelemetry> {
  const loopback = { host: '127.0.0.1', port: 0 };
  return startTelemetry({
    logLevel: 'error',
    metricsAddress: loopback,
    healthAddress: loopback,
    pprof: 'off',
    version: 'test',
    controllers: [],
  });
}

async function openSynced(folder: string): Promise<Directory> {
  const directory = openDirectory({
    folder,
    indexes: trafficIndexes,
    report: problem => console.error('problem in a resource file', problem),
    reportFailure: failure => console.error('unexpected error in the directory', failure),
  });
  directory.start();
  await directory.read.whenSynced();
  return directory;
}

const HOOKS = '/envoygateway.extension.EnvoyGatewayExtension/';

function recording(methods: Methods, calls: HookCall[]): Methods {
  return new Map(
    [...methods].map(([path, method]) => {
      if (method.kind !== 'unary' || !path.startsWith(HOOKS)) return [path, method];
      const call: typeof method.call = async request => {
        const copy = Uint8Array.from(request);
        const answer = await method.call(request);
        calls.push({ hook: path.slice(HOOKS.length), request: copy, answer: whole(answer) });
        return answer;
      };
      return [path, { ...method, call }];
    }),
  );
}

function whole(answer: Bytes): Uint8Array {
  return answer instanceof Uint8Array ? Uint8Array.from(answer) : Buffer.concat(answer);
}
