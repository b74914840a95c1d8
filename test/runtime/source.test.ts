import { afterEach, describe, expect, it } from 'vitest';
import { createMemory } from '../support/store/memory.ts';
import { registerSource } from '../../src/runtime/observer.ts';
import { createActivities } from '../../src/telemetry/activity.ts';
import { serve } from '../../src/telemetry/http.ts';
import type { RunningServers } from '../../src/telemetry/http.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createReadiness, healthRoutes } from '../../src/telemetry/readiness.ts';

const running: RunningServers[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(servers => servers.close()));
});

/** Two sources that are watched, and a server that reports whether they are ready. */
async function watched() {
  const [files, cluster] = [createMemory([]), createMemory([])];
  const deps = { readiness: createReadiness(), activities: createActivities() };
  const endFiles = registerSource('files', files.read, deps);
  registerSource('cluster', cluster.read, deps);
  const log = createLog({ level: 'error', to: { write: () => undefined } });
  const address = { host: '127.0.0.1', port: 0 };
  const routes = healthRoutes(deps.readiness);
  const servers = await serve([{ setting: 'HEALTH_ADDRESS', address, routes }], log);
  running.push(servers);
  const ask = async () => {
    const response = await fetch(`http://127.0.0.1:${servers.ports[0] ?? 0}/readyz?verbose`);
    return [response.status, ...(await response.text()).trim().split('\n')];
  };
  const stateOf = (source: string) =>
    deps.activities
      .list()
      .get(`source ${source}`)
      ?.map(({ what, state }) => `${what} ${state}`);
  return { files, cluster, endFiles, ask, stateOf };
}

describe('a source that is watched', () => {
  it('keeps the process from being ready until it has been read', async () => {
    const { files, cluster, ask } = await watched();
    const [notRead, failed] = ['failed: not synced yet', 'readyz check failed'];
    expect(await ask()).toEqual([503, `[-]files ${notRead}`, `[-]cluster ${notRead}`, failed]);
    await files.start();
    expect(await ask()).toEqual([503, '[+]files ok', `[-]cluster ${notRead}`, failed]);
    await cluster.start();
    expect(await ask()).toEqual([200, '[+]files ok', '[+]cluster ok', 'readyz check passed']);
  });

  it('is shown among the activities of the process', async () => {
    const { files, stateOf } = await watched();
    expect(stateOf('files')).toEqual(['objects syncing']);
    await files.start();
    expect(stateOf('files')).toEqual(['objects synced']);
    expect(stateOf('cluster')).toEqual(['objects syncing']);
  });

  it('is not checked any more after it is removed', async () => {
    const { cluster, endFiles, ask, stateOf } = await watched();
    await cluster.start();
    endFiles();
    expect(await ask()).toEqual([200, '[+]cluster ok', 'readyz check passed']);
    expect(stateOf('files')).toBeUndefined();
  });
});
