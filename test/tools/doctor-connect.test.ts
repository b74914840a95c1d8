import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { operatorAccess } from '../../src/controllers/registry.ts';
import { runDoctor } from '../../src/tools/doctor/command.ts';
import type { Line } from '../../src/tools/doctor/observed.ts';
import { named } from '../support/declared.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { endpoint, meshEndpoints } from '../support/objects.ts';
import { serveInstallation } from '../support/tools/api.ts';
import { captureConsole } from '../support/tools/console.ts';
import { condition, find, healthyInstallation, set } from '../support/tools/installation.ts';
import type { Installation } from '../support/tools/installation.ts';
import type { RunCommand } from '../support/tools/port-forward.ts';
import { parseOutput } from '../support/tools/output.ts';

const printed = captureConsole();

/** An installation with a MeshEndpoints `shop/web` that has these endpoints. */
function withEndpoints(...endpoints: readonly object[]): Installation {
  const installation = healthyInstallation();
  const object = {
    ...named(meshEndpoints({ endpoints }), 'shop/web', { generation: 1 }),
    status: { conditions: [condition('Ready', 'True', 'EndpointsConfigured')] },
  };
  installation.declared.push(object);
  return installation;
}

const refused = (reason: string) => ({
  exitCode: 1,
  stderr: `Dial("100.64.0.1", 8080): unexpected HTTP response: 502 Bad Gateway, dial failure: ${reason}\n\n`,
});

type Options = {
  readonly installation?: Installation;
  readonly run?: RunCommand;
  readonly mayNot?: (path: string) => boolean;
};

/** What doctor --connect prints of connections, and its exit code. */
async function connect(name: string, { installation, run, mayNot }: Options) {
  const kubeconfig = await serveInstallation(
    installation ?? withEndpoints(endpoint()),
    mayNot,
    {},
    undefined,
    run,
  );
  const args = ['--connect', name, '--kubeconfig', kubeconfig, '--output', 'json'];
  const code = await runDoctor(args, { environment: {}, operatorAccess });
  const lines = (parseOutput(printed.out.join('\n')) as { readonly checks: readonly Line[] }).checks.filter(
    ({ check }) => check === 'connect',
  );
  return { code, lines };
}

describe('mesh-gateway doctor --connect', () => {
  it('connects to each endpoint from each mesh pod', async () => {
    const installation = withEndpoints(endpoint(), endpoint({ name: 'six', meshIP: 'fd7a:115c:a1e0::6' }));
    const first = find(installation.pods, 'meshd-example-0');
    set(first, 'spec.containers', [
      { name: 'meshd', env: [{ name: 'TS_SOCKET', value: '/run/meshd.sock' }] },
    ]);
    const second = structuredClone(first);
    set(second, 'metadata.name', 'meshd-example-1');
    set(second, 'spec.containers', [{ name: 'meshd' }]);
    installation.pods.push(second);
    const commands: string[] = [];
    const run: RunCommand = (pod, command) => {
      commands.push(`${pod}: ${command.join(' ')}`);
      return {};
    };
    const { code, lines } = await connect('shop/web', { installation, run });
    expect(lines.map(({ is, text }) => `${is}: ${text}`)).toEqual([
      'ok: endpoint web of MeshEndpoints shop/web accepts connections at 100.64.0.1:8080 from 2 mesh pods',
      'ok: endpoint six of MeshEndpoints shop/web accepts connections at [fd7a:115c:a1e0::6]:8080 from 2 mesh pods',
    ]);
    expect(commands.toSorted()).toEqual([
      'meshd-example-0: tailscale --socket=/run/meshd.sock nc 100.64.0.1 8080',
      'meshd-example-0: tailscale --socket=/run/meshd.sock nc fd7a:115c:a1e0::6 8080',
      'meshd-example-1: tailscale --socket=/tmp/tailscaled.sock nc 100.64.0.1 8080',
      'meshd-example-1: tailscale --socket=/tmp/tailscaled.sock nc fd7a:115c:a1e0::6 8080',
    ]);
    expect(code).toBe(0);
  });

  it.each([
    [
      refused('connect tcp 100.64.0.1:8080: connection was refused'),
      'connect tcp 100.64.0.1:8080: connection was refused',
    ],
    [{ exitCode: 1, stderr: 'Logged out.\n' }, 'Logged out.'],
    [{ exitCode: 1 }, 'tailscale nc failed'],
  ])('fails with the reason of tailscale %#', async (end, reason) => {
    const { code, lines } = await connect('shop/web', { run: () => end });
    expect(lines).toEqual([
      {
        ...{ check: 'connect', is: 'failed', reason: 'NotConnected' },
        text: `endpoint web of MeshEndpoints shop/web at 100.64.0.1:8080: meshd-example-0: ${reason}`,
        fix: 'check that the device is online, that its service listens on port 8080, and that the policy of the tailnet lets tag:mesh connect to it',
      },
    ]);
    expect(code).toBe(1);
  });

  it('prints what docs/why-is-my-route-not-working.md shows', async () => {
    const run = () => refused('connect tcp 100.64.0.1:8080: connection was refused');
    const kubeconfig = await serveInstallation(healthyInstallation(), undefined, {}, undefined, run);
    await runDoctor(['--connect', 'default/web', '--kubeconfig', kubeconfig], {
      environment: {},
      operatorAccess,
    });
    const page = readFileSync(join(PROJECT, 'docs/why-is-my-route-not-working.md'), 'utf8');
    const [, block = ''] = /\$ npx mesh-gateway doctor --connect \S+\n\.\.\.\n([^]*?)```/.exec(page) ?? [];
    expect(`${[...printed.out, ...printed.err].join('\n')}\n`.endsWith(`\n${block}`)).toBe(true);
  });

  it.each<readonly [what: string, options: Options, text: string]>([
    [
      'a right',
      { mayNot: path => path.endsWith('/exec') },
      'you have no right to run commands in pods of namespace mesh-system (get and create pods/exec)',
    ],
    [
      'the program',
      { run: () => ({ status: { status: 'Failure', message: 'executable file not found' } }) },
      'executable file not found',
    ],
    ['UDP', { installation: withEndpoints(endpoint({ protocol: 'UDP' })) }, 'the protocol UDP'],
    [
      'a mesh pod on the path',
      { installation: withEndpoints(endpoint({ externalTarget: 'db.example.com:5432' })) },
      'Envoy connects to its externalTarget directly, not from a mesh pod',
    ],
    ['endpoints', { installation: withEndpoints() }, 'MeshEndpoints shop/web has no endpoints'],
  ])('does not check without %s', async (_what, options, text) => {
    const { lines } = await connect('shop/web', options);
    expect(lines).toEqual([
      { check: 'connect', is: 'not checked', text: expect.stringContaining(text) as string },
    ]);
  });

  it.each<readonly [what: string, change: (installation: Installation) => void, text: string]>([
    [
      'a MeshTailnet',
      ({ declared }) => set(find(declared, 'example'), 'spec.tailnet', 'other.ts.net'),
      'there is no MeshTailnet with tailnet: example.ts.net',
    ],
    [
      'a pool of its own',
      ({ declared }) =>
        set(find(declared, 'example'), 'spec.pool', { mode: 'External', addresses: ['10.0.0.1:1055'] }),
      'the proxies of MeshTailnet example are no mesh pods of this cluster',
    ],
    [
      'a ready mesh pod',
      ({ pods }) => set(find(pods, 'meshd-example-0'), 'status.conditions', []),
      'no mesh pod of MeshTailnet example is ready',
    ],
  ])('does not check without %s', async (_what, change, text) => {
    const installation = withEndpoints(endpoint());
    change(installation);
    const { lines } = await connect('shop/web', { installation });
    expect(lines.map(({ is, text: printed }) => `${is}: ${printed}`)).toEqual([
      `not checked: MeshEndpoints shop/web: ${text}`,
    ]);
  });

  it('takes a name alone where only one object has it', async () => {
    await expect(connect('web', {})).rejects.toThrow(
      'doctor: --connect web is the name of several MeshEndpoints: default/web, shop/web',
    );
    const { lines } = await connect('web', { installation: healthyInstallation() });
    expect(lines.map(({ is }) => is)).toEqual(['ok']);
  });

  it('fails for a MeshEndpoints that does not exist', async () => {
    const { code, lines } = await connect('none', {});
    expect(lines.map(({ is, text }) => `${is}: ${text}`)).toEqual(['failed: there is no MeshEndpoints none']);
    expect(code).toBe(1);
  });
});
