import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { GatewayFiles } from '../../../../src/files/gateway/gateway-files.ts';
import { bindingController } from '../../../../src/controllers/mesh-binding/controller.ts';
import { sharedIndexes } from '../../../../src/store/indexes.ts';
import type { ProcessTelemetry } from '../../../../src/process/telemetry.ts';
import { openDirectory } from '../../../../src/files/directory.ts';
import type { Directory } from '../../../../src/files/directory.ts';
import { systemClock } from '../../../../src/runtime/clock.ts';
import { startController } from '../../../../src/runtime/controller.ts';
import { derivedFrom } from '../../store/traffic.ts';

/** The folders that the operator side works on. */
export type OperatorFolders = {
  readonly resources: string;
  readonly generated: string;
  /** The address that Envoys dial, as the clusters of the extension server have it. */
  readonly edsTarget: string;
};

/** The part of standalone that does not answer Envoy Gateway and Envoy, in this process. */
export type OperatorSide = Pick<Directory, 'read' | 'write'> & { readonly close: () => Promise<void> };

/** Starts it, and waits until all files are read. */
export async function startOperatorSide(
  { resources, generated, edsTarget }: OperatorFolders,
  telemetry: ProcessTelemetry,
): Promise<OperatorSide> {
  const { log } = telemetry;
  const directory = openDirectory({
    folder: resources,
    indexes: [...trafficIndexes, ...sharedIndexes],
    report: problem => console.error('problem in a resource file', problem),
    reportFailure: failure => console.error('unexpected error in the folder', failure),
    onManifests: () => files.onWritten(),
  });
  const { read, write, manifests } = directory;
  const files = new GatewayFiles({ folder: generated, read, written: manifests, clock: systemClock, log });
  const { tracking, traffic: values } = derivedFrom(read, { edsTarget, settingsFrom: 'MeshGateway' });
  const binding = bindingController({ write, clock: systemClock, values });
  const controller = startController(
    binding,
    { tracking, clock: systemClock, telemetry },
    { concurrency: 1, syncPeriodMs: 30_000 },
  );
  files.start();
  directory.start();
  await read.whenSynced();
  return {
    read,
    write,
    close: async () => {
      await controller.drain({ graceMs: 1_000, abortMs: 1_000 });
      await files.close();
      await directory.close();
    },
  };
}
