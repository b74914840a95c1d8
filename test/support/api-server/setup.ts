import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { takeTurn } from '../../../lab/process/lock.ts';
import { ownApiServer } from '../cluster/own-api-server.ts';
import type { OwnApiServer } from '../cluster/own-api-server.ts';
import './shared.ts';

let endTurn: (() => void) | undefined;
let shared: OwnApiServer | undefined;

/** Waits for other runs, which would take the processors from this one, and starts the API server that tests share. */
export async function setup({ provide }: TestProject): Promise<void> {
  endTurn = await takeTurn(join(tmpdir(), 'mesh-gateway-api-server-tests'));
  shared = await ownApiServer();
  const { access, kubeconfig } = shared.server;
  provide('apiServer', { access, kubeconfig });
}

/** Ends the API server, and lets the next run begin. */
export async function teardown(): Promise<void> {
  await shared?.end();
  endTurn?.();
}
