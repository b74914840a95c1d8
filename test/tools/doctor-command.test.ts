import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { operatorAccess } from '../../src/controllers/registry.ts';
import { runDoctor } from '../../src/tools/doctor/command.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { serveInstallation } from '../support/tools/api.ts';
import { captureConsole } from '../support/tools/console.ts';
import {
  condition,
  find,
  healthyInstallation,
  set,
  TAILNET_CONDITIONS,
} from '../support/tools/installation.ts';
import type { Installation } from '../support/tools/installation.ts';
import { parseOutput } from '../support/tools/output.ts';

const printed = captureConsole();

const run = (...args: readonly string[]) => runDoctor(args, { environment: {}, operatorAccess });

async function doctor(kubeconfig: string, ...args: readonly string[]) {
  const status = await run('--kubeconfig', kubeconfig, ...args);
  return { status, out: printed.out.join('\n'), err: printed.err.join('\n') };
}

function withWrongPort(): Installation {
  const installation = healthyInstallation();
  const data = find(installation.envoyGatewayConfig, 'envoy-gateway-config')['data'] as Record<
    string,
    string
  >;
  data['envoy-gateway.yaml'] = (data['envoy-gateway.yaml'] ?? '').replace('port: 5005', 'port: 5006');
  return installation;
}

function withNewTailnet(): Installation {
  const installation = healthyInstallation();
  set(find(installation.declared, 'example'), 'status.conditions', []);
  return installation;
}

describe('mesh-gateway doctor', () => {
  it('exits with 0 where all is well', async () => {
    const { status, out, err } = await doctor(await serveInstallation(healthyInstallation()));
    expect(out.split('\n').filter(line => !line.startsWith('ok '))).toEqual([]);
    expect(err).toMatch(/^\d+ ok, 0 failed, 0 not checked$/);
    expect(status).toBe(0);
  });

  it('prints what the pages show, and exits with 1', async () => {
    const { status, out, err } = await doctor(await serveInstallation(withWrongPort()));
    const page = readFileSync(join(PROJECT, 'docs/why-is-my-route-not-working.md'), 'utf8');
    const [, block = ''] = /\$ npx mesh-gateway doctor\n([^]*?)```/.exec(page) ?? [];
    const printed = `${out}\n${err}\n`.split('\n');
    expect(block).not.toBe('');
    expect(block.split('\n').filter(line => line !== '...' && !printed.includes(line))).toEqual([]);
    expect(status).toBe(1);
  });

  it('exits with 0 where it only warns', async () => {
    const installation = healthyInstallation();
    set(find(installation.declared, 'example'), 'status.conditions', [
      ...TAILNET_CONDITIONS.slice(0, -1).map(type => condition(type, 'True', type)),
      condition('NetworkPoliciesEnforced', 'False', 'NotEnforced', 'not enforced'),
    ]);
    const { status, out, err } = await doctor(await serveInstallation(installation));
    expect(out).toMatch(
      /^warning +network-policies +NotEnforced: not enforced\n +fix:\n +run a network plugin/m,
    );
    expect(err).toMatch(/^\d+ ok, 0 failed, 0 not checked, 1 to consider$/);
    expect(status).toBe(0);
  });

  it('prints JSON', async () => {
    const { out } = await doctor(await serveInstallation(withWrongPort()), '--output', 'json');
    const { checks } = parseOutput(out) as { readonly checks: readonly { readonly is: string }[] };
    expect(checks.filter(({ is }) => is === 'failed')).toEqual([
      {
        ...{ check: 'hook', is: 'failed', reason: 'HookMissing' },
        text: expect.stringContaining(':5006') as string,
        fix: expect.stringContaining('rollout restart') as string,
      },
    ]);
  });

  it.each([
    ['until nothing fails', withWrongPort],
    ['for the operator, which has yet to see an object', withNewTailnet],
  ])('waits %s', async (_what, unfinished) => {
    const installation = unfinished();
    const kubeconfig = await serveInstallation(installation, path => {
      // The second round has the healthy installation.
      if (path === '/version') rounds += 1;
      if (rounds === 2) Object.assign(installation, healthyInstallation());
      return false;
    });
    let rounds = 0;
    const { status } = await doctor(kubeconfig, '--wait', '20s');
    expect({ status, rounds }).toEqual({ status: 0, rounds: 2 });
  });

  it('reads the roles where it may not ask about rights', async () => {
    const installation = healthyInstallation();
    installation.roles = installation.roles.filter(({ kind }) => kind !== 'RoleBinding');
    const kubeconfig = await serveInstallation(installation, path => path.endsWith('/subjectaccessreviews'));
    const { status, out } = await doctor(kubeconfig);
    expect(out).toMatch(
      /^failed +rbac-operator +ServiceAccount mesh-system\/mesh-operator may not list configmaps/m,
    );
    expect(status).toBe(1);
  });

  it('names what it may not read, and does not fail for it', async () => {
    const refused = /pods$|subjectaccessreviews|clusterroles|configmaps|gateways$/;
    const kubeconfig = await serveInstallation(healthyInstallation(), path => refused.test(path));
    const { status, out } = await doctor(kubeconfig);
    expect(out).toMatch(
      /^not checked +rbac-operator .*you have a right neither to create subjectaccessreviews nor to list roles/m,
    );
    expect(out).toMatch(/^not checked +hook +you have no right to get .*envoy-gateway-config/m);
    expect(out).toMatch(/^not checked +port-5005 +you have no right to list .*pods/m);
    expect(out).toMatch(/^not checked +routes +you have no right to list meshgateways, gateways, on which/m);
    expect(status).toBe(0);
  });

  it('checks routes by the configuration of the extension server', async () => {
    const installation = healthyInstallation();
    set(find(installation.deployments, 'mesh-extension-server'), 'spec.template.spec.containers', [
      { name: 'extension-server', env: [{ name: 'REFUSED_ADDRESSES', value: '100.64.0.0/24' }] },
    ]);
    const { out } = await doctor(await serveInstallation(installation));
    expect(out).toMatch(/^failed +routes +.*AddressRefused: /m);
  });

  it('prints no control character of a name', async () => {
    const installation = healthyInstallation();
    set(find(installation.envoyGateways, 'envoy-gateway'), 'spec.template.spec.containers', [
      { image: 'a\u001b[2J:x' },
    ]);
    const { out } = await doctor(await serveInstallation(installation));
    expect(out).toContain('the image a?[2J:x of Deployment');
  });

  it('refuses what it does not know', async () => {
    await expect(run('--wait', 'soon')).rejects.toThrow('doctor: --wait "soon" is not a duration');
    await expect(run('--output', 'xml')).rejects.toThrow('neither text nor json');
    await expect(run('cluster')).rejects.toThrow('cluster');
    await expect(run('--kubeconfig', '/none')).rejects.toThrow('none cannot be read');
  });
});
