import { mkdirSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GATEWAY_NAME } from '../../../../lab/gateway/objects.ts';
import type { KubernetesObject } from '../../../../lab/gateway/objects.ts';
import { freePorts } from '../../../../lab/process/ports.ts';
import { writeResources } from '../../../../lab/gateway/resource-files.ts';
import type { Gateway, Lab } from '../../../../lab/state.ts';
import type { ProcessTelemetry } from '../../../../src/process/telemetry.ts';
import { gatewayOf, ownFolder, startTestLab } from '../lab.ts';
import type { OwnFolder } from '../lab.ts';
import { gatewayWith, portsFor } from './many-listeners.ts';
import { startOperatorSide } from './operator-side.ts';
import type { OperatorSide } from './operator-side.ts';
import { quietTelemetry } from './quiet-telemetry.ts';

/** The options of an extension server. */
export type ExtensionBase = {
  readonly operator: OperatorSide;
  readonly telemetry: ProcessTelemetry;
  /** The folder that a user edits. */
  readonly resources: string;
  /** The folder for its files. */
  readonly home: string;
  /** The folder with the records of its processes. */
  readonly folder: OwnFolder['folder'];
  /** The address to listen on. */
  readonly port: number;
};

/** A running extension server. */
export type RunningExtension = { readonly address: string; readonly close: () => Promise<void> };

/**
 * The whole system, with the operator side in this process, so that a test can write status as an operator does, and
 * an extension server of the test's choice, so that it can end while the operator continues.
 */
export interface Composed<Extension extends RunningExtension> {
  readonly lab: Lab;
  readonly gateway: Gateway;
  readonly operator: OperatorSide;
  readonly extension: Extension;
  readonly folder: OwnFolder['folder'];
  /** The folder that a user edits. */
  readonly resources: string;
  /** The folder that Envoy Gateway reads. */
  readonly generated: string;
  /** Replaces the objects of a name; does not wait. */
  put(name: string, objects: readonly KubernetesObject[]): void;
  end(): Promise<void>;
}

/** Starts it with a Gateway that has no routes yet. */
export async function startComposed<Extension extends RunningExtension>(
  start: (base: ExtensionBase) => Promise<Extension>,
): Promise<Composed<Extension>> {
  const home = mkdtempSync(join(tmpdir(), 'mesh-composed-'));
  const folderIn = (name: string) => {
    const path = join(home, name);
    mkdirSync(path, { mode: 0o700 });
    return path;
  };
  const [resources, generated] = [folderIn('resources'), folderIn('generated')];
  const ports = await portsFor({});
  const [port = 0] = await freePorts(1);
  const put = (name: string, objects: readonly KubernetesObject[]) =>
    writeResources({ resources }, name, objects);
  put('gateway', gatewayWith(ports, {}).map(withoutAccessLog));
  const own = ownFolder();
  const ends = [() => rm(home, { recursive: true, force: true }), () => own.end()];
  const end = async () => {
    for (const one of ends.splice(0).reverse()) await one();
  };
  try {
    const telemetry = await quietTelemetry('mesh-binding');
    ends.push(() => telemetry.close());
    const operator = await startOperatorSide(
      { resources, generated, edsTarget: `127.0.0.1:${port}` },
      telemetry,
    );
    ends.push(() => operator.close());
    const base = { operator, telemetry, resources, home, folder: own.folder, port };
    const extension = await start(base);
    ends.push(() => extension.close());
    const objects = { ...GATEWAY_NAME, folder: generated, listeners: ports };
    const { lab } = await startTestLab({ gateway: { extension: extension.address, objects } }, own);
    const gateway = gatewayOf(lab);
    return { lab, gateway, operator, extension, folder: own.folder, resources, generated, put, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Tests with many requests would fill Envoy's log. */
function withoutAccessLog(object: KubernetesObject): KubernetesObject {
  if (object.kind !== 'EnvoyProxy') return object;
  const telemetry = { accessLog: { disable: true } };
  return { ...object, spec: { ...(object['spec'] as object), telemetry } };
}
