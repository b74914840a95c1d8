import { expect } from 'vitest';
import { startControlApi } from '../../../../lab/control-api/control-api.ts';
import type { ControlApi, ControlApiOptions } from '../../../../lab/control-api/control-api.ts';
import type { Device } from '../../../../lab/control-api/state.ts';
import { VirtualClock } from '../../virtual-clock.ts';
import { Installation } from './installation.ts';
import type { InstallationOptions } from './installation.ts';

const START = Date.UTC(2026, 0, 15, 12);

/** The most steps that anything takes, of one second each. */
const MAX_STEPS = 400;

/** A simulated control API and the installations in its tailnet, which take their steps together. */
export class PoolScene {
  readonly api: ControlApi;
  readonly clock: VirtualClock;
  readonly installations: Installation[] = [];
  #afterStep: () => void = () => undefined;

  constructor(api: ControlApi, clock: VirtualClock) {
    this.api = api;
    this.clock = clock;
    // With several installations the caller of a request is not known, and nothing is disturbed.
    api.fail({
      fault: route => (this.installations.length === 1 ? this.installations[0]?.request(route) : undefined),
    });
  }

  now(): Date {
    return new Date(START + this.clock.now());
  }

  install(id = 'a1b2c3d4', options: Pick<InstallationOptions, 'isDefault' | 'lag'> = {}): Installation {
    const { api, clock } = this;
    const installation = new Installation({ api, clock, now: () => this.now(), id, ...options });
    this.installations.push(installation);
    return installation;
  }

  /** Does something whenever the clusters have taken a step; the returned function ends that. */
  afterSteps(act: () => void): () => void {
    this.#afterStep = act;
    return () => {
      this.#afterStep = () => undefined;
    };
  }

  /** Everything in the clusters takes one step, controllers reconcile, and time goes by. */
  async step(ms = 1000): Promise<void> {
    for (const installation of this.installations) installation.stepCluster();
    this.#afterStep();
    await this.#settle();
    await this.clock.advance(ms);
    await this.#settle();
  }

  async steps(count: number, ms = 1000): Promise<void> {
    for (let left = count; left > 0; left--) await this.step(ms);
  }

  /** Takes steps until an expectation holds. */
  async until(expectation: () => void, ms = 1000): Promise<void> {
    for (let taken = 0; taken < MAX_STEPS; taken++) {
      await this.step(ms);
      if (failureOf(expectation) === undefined) return;
    }
    const failure = failureOf(expectation);
    if (failure instanceof Error) failure.message += `\n${this.#describe()}`;
    throw failure;
  }

  /** Devices that joined by a key. */
  joined(): readonly Device[] {
    return this.api.state.devices.all().filter(({ keyId }) => keyId !== undefined);
  }

  async close(): Promise<void> {
    for (const installation of this.installations) await installation.close();
    await this.api.close();
  }

  async #settle(): Promise<void> {
    for (const installation of this.installations) await installation.settle();
  }

  #describe(): string {
    const devices = this.joined().map(({ hostname, nodeId, lastSeenMs }) => ({
      hostname,
      nodeId,
      lastSeenMs,
    }));
    const clusters = this.installations.map(installation => ({
      conditions: installation
        .status()
        .conditions?.map(({ type, status, reason, message }) => [type, status, reason, message].join(' ')),
      pods: installation.kubelet.describe(),
      secrets: installation.secrets().map(name => {
        const { data = {}, annotations = {} } = installation.namespace.readSecret(name) ?? {};
        return { name, data: Object.keys(data), annotations };
      }),
      calls: installation.calls().slice(-20),
      lines: installation.lines.slice(-5),
    }));
    return JSON.stringify({ at: this.now(), devices, clusters }, null, 1);
  }
}

/** Starts a scene without installations. */
export async function startPoolScene(options: ControlApiOptions = {}): Promise<PoolScene> {
  const clock = new VirtualClock();
  const api = await startControlApi({ clock: { now: () => START + clock.now() }, ...options });
  return new PoolScene(api, clock);
}

/** Expects that all members of a pool are ready, each with one device, and that nothing else exists in the tailnet. */
export function expectReady(scene: PoolScene, installation: Installation, replicas: number): void {
  expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
  expect(installation.status().pool).toMatchObject({ ready: replicas, desired: replicas });
  expectMembers(scene, installation, replicas);
}

/** Expects one device and one Secret for each member, and nothing else of a pool in the cluster and the tailnet. */
export function expectMembers(scene: PoolScene, installation: Installation, replicas: number): void {
  const { namespace, kubelet } = installation;
  const names = Array.from({ length: replicas }, (_, ordinal) => `meshd-example-${ordinal}`);
  expect(kubelet.names().toSorted()).toEqual(names);
  expect(installation.secrets()).toEqual(names);
  const data = names.map(name => namespace.readSecret(name)?.data ?? {});
  expect(data.map(({ authkey }) => authkey)).toEqual(names.map(() => undefined));
  const devices = scene.joined().toSorted((one, other) => (one.hostname < other.hostname ? -1 : 1));
  expect(devices.map(({ hostname }) => hostname)).toEqual(names.map(name => `${name}-${installation.id}`));
  expect(devices.map(({ nodeId }) => nodeId)).toEqual(data.map(({ device_id: id }) => id));
  scene.api.audit({ devices: devices.map(({ nodeId }) => nodeId) });
}

/** Expects that neither the cluster nor the tailnet has anything of the pool. */
export function expectRemoved(scene: PoolScene, installation: Installation): void {
  expect(installation.get()).toBeUndefined();
  expectMembers(scene, installation, 0);
  scene.api.audit();
}

function failureOf(expectation: () => void): unknown {
  try {
    expectation();
    return undefined;
  } catch (error) {
    return error;
  }
}
