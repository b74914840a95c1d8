import { KubeConfig } from '@kubernetes/client-node';
import type { Credentials } from './access-account.ts';
import { AccessError } from './access-error.ts';
import type { KubeconfigEntry } from './access-kubeconfig.ts';

const NAME = 'current';

/** Asks the providers that kubeconfig files name, such as oidc; what they have renewed is kept. */
export function openProvider(): (entry: KubeconfigEntry) => Promise<Credentials> {
  const known = new KubeConfig();
  let loaded: string | undefined;
  return async ({ user }) => {
    const provider = user['auth-provider'];
    if (loaded !== JSON.stringify(provider)) {
      known.loadFromOptions({
        clusters: [{ name: NAME, server: 'https://localhost', skipTLSVerify: true }],
        users: [{ name: NAME, authProvider: structuredClone(provider) }],
        contexts: [{ name: NAME, cluster: NAME, user: NAME }],
        currentContext: NAME,
      });
      loaded = JSON.stringify(provider);
    }
    return { token: await tokenOf(known) };
  };
}

/** What the library throws may repeat what it was answered. */
async function tokenOf(known: KubeConfig): Promise<string> {
  const options: { headers: Record<string, unknown> } = { headers: {} };
  try {
    await known.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  } catch {
    throw new AccessError('the auth-provider of the user failed');
  }
  const token = /^Bearer (.+)$/.exec(String(options.headers['Authorization']))?.[1];
  if (token === undefined)
    throw new AccessError('the auth-provider of the user is not known, or gave no token');
  return token;
}
