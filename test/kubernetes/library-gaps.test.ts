import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { kubeconfigText, makeFiles } from '../support/kubernetes/wire-kubeconfig.ts';

/**
 * The gaps of the library that src/kubernetes/auth/library-gaps.ts fills. If a test here fails, the library
 * has closed the gap: delete the test and the code.
 */
async function headersOf(user: object): Promise<unknown> {
  const config = new KubeConfig();
  config.loadFromString(kubeconfigText({ cluster: { server: 'https://a' }, user: { ...user } }));
  const options: { headers: Record<string, unknown> } = { headers: {} };
  await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  return options.headers;
}

describe('the library still', () => {
  it('ignores tokenFile', async () => {
    expect(await headersOf({ tokenFile: makeFiles().write('token', 't') })).toEqual({});
  });

  it('ignores the groups of an impersonation', async () => {
    expect(await headersOf({ token: 't', as: 'a', 'as-groups': ['b'] })).toEqual({
      Authorization: 'Bearer t',
      'Impersonate-User': 'a',
    });
  });

  it('sets no KUBERNETES_EXEC_INFO for a program', async () => {
    const script = `printf '{"status":{"token":"%s."}}' "$KUBERNETES_EXEC_INFO"`;
    const exec = { command: 'sh', args: ['-c', script] };
    expect(await headersOf({ exec })).toEqual({ Authorization: 'Bearer .' });
  });

  it('runs a program without a time limit', async () => {
    const config = new KubeConfig();
    const exec = { command: 'a', env: [{ name: 'b', value: 'c' }] };
    config.loadFromString(kubeconfigText({ cluster: { server: 'https://a' }, user: { exec } }));
    let seen: object = {};
    for (const each of Reflect.get(config, 'authenticators') as readonly object[]) {
      if (!('execFn' in each)) continue;
      each.execFn = (_command: string, _args: readonly string[], options: object) => {
        seen = options;
        throw new Error('not run');
      };
    }
    await expect(config.applyToHTTPSOptions({})).rejects.toThrow('not run');
    expect(Object.keys(seen)).toEqual(['env']);
  });

  it('does not resolve the path of a program', () => {
    const config = new KubeConfig();
    const files = makeFiles();
    const user = { exec: { command: './login' } };
    config.loadFromFile(files.write('config', kubeconfigText({ cluster: { server: 'https://a' }, user })));
    expect(config.getCurrentUser()?.exec).toEqual({ command: './login' });
  });
});
