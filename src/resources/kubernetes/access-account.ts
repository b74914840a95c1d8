import { readFile } from 'node:fs/promises';
import type { AccessOptions, Account, Standing, TlsSettings } from './access.ts';
import { AccessError } from './access-error.ts';
import type { KubeconfigEntry } from './access-kubeconfig.ts';
import { execCredentials } from './credentials-exec.ts';

type Fields = KubeconfigEntry['user'];

/** What a program or a provider says who we are. */
export type Credentials = {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly forMs?: number;
};

/** Gives the function that makes an account of what files say. Fails with AccessError. */
export function accountReader(
  options: Pick<AccessOptions, 'environment' | 'clock' | 'now'>,
): (entry: KubeconfigEntry, standing: Standing) => Promise<Account> {
  const askProgram = execCredentials(options);
  const askProvider = providerCredentials();
  return async (entry, standing) => {
    const { cluster, user } = entry;
    const server = serverOf(cluster);
    const [ca, cert, key, fileToken] = await Promise.all([
      contentOf(cluster, 'certificate-authority'),
      contentOf(user, 'client-certificate'),
      contentOf(user, 'client-key'),
      tokenOf(user),
    ]);
    const given: Credentials =
      fileToken === undefined && user['exec'] !== undefined
        ? await askProgram(entry, standing)
        : fileToken === undefined && user['auth-provider'] !== undefined
          ? await askProvider(entry)
          : {};
    const tls = {
      ...present({ ca, cert: given.cert ?? cert, key: given.key ?? key }),
      ...verificationOf(cluster),
    };
    const headers = { ...authorization(user, fileToken ?? given.token), ...impersonation(user) };
    return { server, tls, headers, ...present({ forMs: given.forMs }) };
  };
}

/** Fails with AccessError where an entry wants what is not supported. */
export function expectSupported({ cluster, user }: KubeconfigEntry): void {
  serverOf(cluster);
  impersonation(user);
}

/** Loaded only for the few who need it, because it takes long and much memory. */
function providerCredentials(): (entry: KubeconfigEntry) => Promise<Credentials> {
  let ask: ((entry: KubeconfigEntry) => Promise<Credentials>) | undefined;
  return async entry => {
    const { openProvider } = await import('./credentials-provider.ts');
    ask ??= openProvider();
    return await ask(entry);
  };
}

function serverOf(cluster: Fields): string {
  const server = textOf(cluster, 'server');
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new AccessError('the cluster names no http or https server');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new AccessError('the server of the cluster must be scheme, host, port and path alone');
  if (textOf(cluster, 'proxy-url') !== '') throw new AccessError('proxy-url is not supported: remove it');
  return server.replace(/\/+$/, '');
}

function verificationOf(cluster: Fields): TlsSettings {
  const servername = textOf(cluster, 'tls-server-name');
  return {
    ...(servername === '' ? {} : { servername }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false } : {}),
  };
}

/** What stands in a kubeconfig counts before the file that it names. */
async function contentOf(fields: Fields, name: string): Promise<string | undefined> {
  const data = textOf(fields, `${name}-data`);
  if (data !== '') return Buffer.from(data, 'base64').toString('latin1');
  const file = textOf(fields, name);
  return file === '' ? undefined : await readSecretFile(file);
}

/** A file counts before what stands in a kubeconfig, because it may be renewed. */
async function tokenOf(user: Fields): Promise<string | undefined> {
  const file = textOf(user, 'tokenFile');
  if (file !== '') return (await readSecretFile(file)).trim();
  const token = textOf(user, 'token').trim();
  return token === '' ? undefined : token;
}

async function readSecretFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'latin1');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new AccessError(`${file} cannot be read (${code})`);
  }
}

function authorization(user: Fields, token: string | undefined): Readonly<Record<string, string>> {
  if (token !== undefined) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new AccessError('what should be a token is none');
    return { authorization: `Bearer ${token}` };
  }
  const name = textOf(user, 'username');
  if (name === '') return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${textOf(user, 'password')}`).toString('base64')}` };
}

/** Groups and more would be several headers of one name; whoever writes them must not be taken for someone else. */
function impersonation(user: Fields): Readonly<Record<string, string>> {
  const refused = ['as-uid', 'as-groups', 'as-user-extra'].find(name => user[name] !== undefined);
  if (refused !== undefined) throw new AccessError(`${refused} of a user is not supported: remove it`);
  const name = textOf(user, 'as');
  return name === '' ? {} : { 'impersonate-user': name };
}

function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === 'string' ? value : '';
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function present<T extends object>(fields: T): Present<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>;
}
