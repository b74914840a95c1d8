import { describe, expect, it } from 'vitest';
import { meshPodSettings } from '../../src/process/mesh-pods.ts';
import { readSettings } from '../../src/process/settings.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';

const read = (environment: Readonly<Record<string, string>>) =>
  readSettings(meshPodSettings, { args: [], environment });

function refusalOf(environment: Readonly<Record<string, string>>): string {
  try {
    read(environment);
  } catch (error) {
    if (error instanceof SettingError) return error.message;
    throw error;
  }
  return 'was taken';
}

describe('the settings of mesh pods', () => {
  it('are empty by default, except the ports', () => {
    expect(read({})).toEqual({
      controlURL: undefined,
      meshPods: {},
      orphanAgeMs: 600_000,
      relayPorts: { first: 20_000, last: 29_999 },
      relayPortsPerNamespace: undefined,
      maxVipServices: 1000,
      relayImage: undefined,
      imagePullSecrets: [],
    });
  });

  it('are fields of a pool, as a MeshTailnet has them', () => {
    const pool = { image: 'a/b:1', resources: { limits: { cpu: '1' } }, nodeSelector: { a: 'b' } };
    expect(read({ MESH_PODS: JSON.stringify(pool) }).meshPods).toEqual(pool);
    expect(read({ CONTROL_API_URL: ' https://a.example ' }).controlURL).toBe('https://a.example');
    expect(read({ RELAY_PORTS: '1024-65535' }).relayPorts).toEqual({ first: 1024, last: 65_535 });
    expect(read({ RELAY_PORTS_PER_NAMESPACE: '500' }).relayPortsPerNamespace).toBe(500);
    expect(read({ IMAGE_PULL_SECRETS: 'one, two' }).imagePullSecrets).toEqual(['one', 'two']);
  });

  const FIELDS = 'image, resources, nodeSelector, tolerations, priorityClassName, extraEnv';
  const PORTS = 'write the first and the last port, from 1024 to 65535, such as 20000-29999';
  it.each([
    [
      { CONTROL_API_URL: 'https://user:secret@a.example' },
      'CONTROL_API_URL: the value (not shown) is not an http:// or https:// URL without user name, password, query or fragment, at most 1024 characters',
    ],
    [{ MESH_PODS: '{"image":' }, 'MESH_PODS: is not JSON'],
    [
      { MESH_PODS: '[]' },
      'MESH_PODS: is not a JSON object: write one, such as {"image":"registry.example.com/meshd:1.0"}',
    ],
    [{ MESH_PODS: '{"replicas":3}' }, `MESH_PODS: "replicas" is not one of ${FIELDS}`],
    [{ MESH_PODS: '{"__proto__":{}}' }, `MESH_PODS: "__proto__" is not one of ${FIELDS}`],
    [
      { MESH_PODS: '{"resources":{"limit":{"cpu":"1"}}}' },
      'MESH_PODS: resources.limit: there is no such field',
    ],
    [
      { MESH_PODS: '{"image":"a b"}' },
      'MESH_PODS: image: "a b" is not an image reference, such as registry.example.com/mesh/meshd:1.0',
    ],
    [
      { MESH_PODS: '{"extraEnv":[{"name":"TS_EXTRA_ARGS","value":"--ssh"}]}' },
      'MESH_PODS: extraEnv[0].name: the value (not shown) is not one of GOGC, GOMAXPROCS, GOMEMLIMIT, TS_BOOT_TIMEOUT, TS_DEBUG_ALWAYS_USE_DERP, TS_DEBUG_DERP (and what begins with it), TS_DEBUG_DISCO, TS_DEBUG_ENABLE_PMTUD, TS_DEBUG_MTU, TS_DEBUG_NETCHECK, TS_DEBUG_PMTUD, TS_DEBUG_USE_DERP_HTTP, TS_DISABLE_PORTMAPPER, TS_DISABLE_UPNP, TS_NO_LOGS_NO_SUPPORT, TZ, at most 128 characters: others decide what a mesh pod runs, listens on or trusts',
    ],
    [{ MESH_PODS: '{"extraEnv":[{"name":"TZ"}]}' }, 'MESH_PODS: extraEnv[0].value: is required: give a text'],
    [{ RELAY_PORTS: '80-90' }, `RELAY_PORTS: "80-90" is not a range of ports; ${PORTS}`],
    [{ RELAY_PORTS: '3000-2000' }, `RELAY_PORTS: "3000-2000" is not a range of ports; ${PORTS}`],
    [{ RELAY_PORTS: '3000' }, `RELAY_PORTS: "3000" is not a range of ports; ${PORTS}`],
    [
      { RELAY_PORTS_PER_NAMESPACE: '0' },
      'RELAY_PORTS_PER_NAMESPACE: "0" is not a whole number from 1 on, such as 10',
    ],
    [{ MAX_VIP_SERVICES: '1001' }, 'MAX_VIP_SERVICES: 1001 is more than mesh pods serve: the most is 1000'],
    [{ RELAY_PORTS: '3000-65536' }, `RELAY_PORTS: "3000-65536" is not a range of ports; ${PORTS}`],
  ])('refuse %j', (environment, message) => {
    expect(refusalOf(environment)).toBe(message);
  });
});
