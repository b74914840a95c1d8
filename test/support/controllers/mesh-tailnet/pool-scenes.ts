import { afterEach } from 'vitest';
import type { ControlApiOptions } from '../../../../lab/control-api/control-api.ts';
import type { Installation } from './installation.ts';
import { expectReady, startPoolScene } from './scene.ts';
import type { PoolScene } from './scene.ts';

/** The Secret of the first member. */
export const FIRST = 'meshd-example-0';

export function secretOf(installation: Installation) {
  return installation.namespace.readSecret(FIRST)?.data ?? {};
}

/** Scenes with one installation, which end with the test that has started them. */
export function poolScenes() {
  const scenes: PoolScene[] = [];
  afterEach(async () => {
    for (const scene of scenes.splice(0)) await scene.close();
  });
  const sceneOf = async (options: ControlApiOptions = {}) => {
    const scene = await startPoolScene(options);
    scenes.push(scene);
    return { scene, installation: scene.install() };
  };
  const readyScene = async (replicas = 2, spec: object = {}, options: ControlApiOptions = {}) => {
    const { scene, installation } = await sceneOf(options);
    installation.put({ pool: { replicas }, ...spec });
    await scene.until(() => expectReady(scene, installation, replicas));
    return { scene, installation };
  };
  return { sceneOf, readyScene };
}
