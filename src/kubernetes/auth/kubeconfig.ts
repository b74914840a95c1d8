import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { delimiter, dirname } from 'node:path';
import { KubeConfig, loadYaml } from '@kubernetes/client-node';
import type { Cluster, Context, User } from '@kubernetes/client-node';
import { isEqual } from '../../api/json.ts';
import { SettingError } from '../../telemetry/setting-error.ts';
import { fieldsOf, textIn } from '../unstructured.ts';
import type { ConfigSourceOptions } from './config-source.ts';
import { CredentialsError, checkedHeader, readSecretFile } from './rest-config.ts';
import type { RestConfig, RestConfigSource } from './rest-config.ts';
import { limitExecPrograms, unsupportedField, execOf, tokenFileOf } from './library-gaps.ts';
import type { RawUser } from './library-gaps.ts';

/** The least time between two runs of an exec program. */
const EXEC_INTERVAL_MS = 1000;
const EXEC_TIMEOUT_MS = 30_000;

type File = { readonly path: string; readonly text: string };

/** The state for one content of the files. */
type Loaded = {
  readonly files: readonly File[];
  readonly loadedAt: number;
  /** Whether its credentials come from an exec program. */
  readonly runsProgram: boolean;
  readonly config: () => Promise<RestConfig>;
};

/** Reads kubeconfig files by the library. What it renews, such as an OIDC token, is kept until the files change. */
export async function kubeconfigSource(options: ConfigSourceOptions): Promise<RestConfigSource> {
  const { kubeconfig, context, clock, execTimeoutMs = EXEC_TIMEOUT_MS } = options;
  const load = (files: readonly File[]) => loadedOf(files, { context, at: clock.now(), execTimeoutMs });
  let loaded = load(await readFiles(kubeconfig));
  let hasFailed = false;
  return {
    load: async reason => {
      const files = await readFiles(kubeconfig);
      const runsAgain = loaded.runsProgram && (hasFailed || reason === 'unauthorized');
      const isTooEarly = clock.now() < loaded.loadedAt + EXEC_INTERVAL_MS;
      if (!isEqual(files, loaded.files) || (runsAgain && !isTooEarly)) loaded = load(files);
      const config = loaded.config();
      config.then(
        () => (hasFailed = false),
        () => (hasFailed = true),
      );
      return await config;
    },
  };
}

async function readFiles(setting: string): Promise<readonly File[]> {
  const paths = setting.split(delimiter).filter(path => path.trim() !== '');
  const read = async (path: string): Promise<readonly File[]> => {
    try {
      return [{ path, text: await readFile(path, 'utf8') }];
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
      if (code === 'ENOENT' && paths.length > 1) return [];
      return fail(`${path} cannot be read (${code})`);
    }
  };
  const files = (await Promise.all(paths.map(read))).flat();
  return files.length === 0 ? fail('none of its files exists') : files;
}

type LoadOptions = {
  readonly context: string | undefined;
  readonly at: number;
  readonly execTimeoutMs: number;
};

function loadedOf(files: readonly File[], { context, at: loadedAt, execTimeoutMs }: LoadOptions): Loaded {
  const { cluster, user, tokenFile } = contextNamed(context, files.map(parsed));
  const library = new KubeConfig();
  limitExecPrograms(library, execTimeoutMs);
  const runsProgram = user.exec !== undefined;
  let program: Promise<User> | undefined;
  const config = async (): Promise<RestConfig> => {
    let now = runsProgram ? await (program ??= withExecCredentials(library, cluster, user)) : user;
    if (tokenFile !== '') now = { ...now, token: await readSecretFile(tokenFile) };
    return restConfigOf(cluster, now, await applied(library, cluster, now));
  };
  return { files, loadedAt, runsProgram, config };
}

/** The user with the credentials that its program printed, which are used until a 401. */
async function withExecCredentials(config: KubeConfig, cluster: Cluster, user: User): Promise<User> {
  const { headers, cert, key } = await applied(config, cluster, user);
  const token = /^Bearer (.+)$/.exec(headers['Authorization'] ?? '')?.[1];
  if (token === undefined && (cert === undefined || key === undefined))
    throw new CredentialsError(`${commandOf(user)} printed no credentials`);
  return {
    ...user,
    exec: undefined,
    ...(token === undefined ? {} : { token }),
    ...(cert === undefined ? {} : { certData: base64(cert), certFile: '' }),
    ...(key === undefined ? {} : { keyData: base64(key), keyFile: '' }),
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

type Applied = Readonly<Record<'ca' | 'cert' | 'key' | 'auth', string | undefined>> & {
  readonly headers: Readonly<Record<string, string>>;
  readonly servername: string | undefined;
  readonly rejectUnauthorized: boolean | undefined;
};

/** The library's own errors may contain secrets. */
async function applied(config: KubeConfig, cluster: Cluster, user: User): Promise<Applied> {
  config.loadFromClusterAndUser(cluster, user);
  const options: RequestOptions & { headers: Record<string, string> } = { headers: {} };
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw new CredentialsError(failureOf(error, user));
  }
  const { headers, ca, cert, key, auth, servername, rejectUnauthorized } = options;
  const text = (value: unknown) =>
    typeof value === 'string' || Buffer.isBuffer(value) ? value.toString() : undefined;
  return {
    headers,
    ca: text(ca),
    cert: text(cert),
    key: text(key),
    auth: text(auth),
    servername,
    rejectUnauthorized,
  };
}

function failureOf(error: unknown, user: User): string {
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'open') return `${path ?? 'a file'} cannot be read (${code ?? 'unknown'})`;
  const how = typeof code === 'string' ? ` (${code})` : '';
  if (user.exec !== undefined) return `${commandOf(user)} printed no credentials${how}`;
  return `the auth-provider of the user failed${how}`;
}

function commandOf({ exec }: User): string {
  return textIn(fieldsOf(exec), 'command') || 'exec of the user';
}

function restConfigOf({ server }: Cluster, user: User, options: Applied): RestConfig {
  const { ca, cert, key, servername, rejectUnauthorized, auth } = options;
  const headers = Object.entries(options.headers).map(([name, value]) => [
    name.toLowerCase(),
    checkedHeader(value),
  ]);
  const all = Object.fromEntries(headers) as Record<string, string>;
  if (auth !== undefined) all['authorization'] ??= `Basic ${base64(auth)}`;
  if (user.authProvider && all['authorization'] === undefined)
    throw new CredentialsError('the auth-provider of the user is unknown, or returned no token');
  const tls = { ca, cert, key, servername, rejectUnauthorized };
  const present = Object.entries(tls).filter(([, value]) => value !== undefined);
  return { server: server.replace(/\/+$/, ''), tls: Object.fromEntries(present), headers: all };
}

type Parsed = { readonly config: KubeConfig; readonly users: readonly RawUser[] };

function parsed({ path, text }: File): Parsed {
  const config = new KubeConfig();
  try {
    config.loadFromString(text, { onInvalidEntry: 'filter' });
    const users = fieldsOf(loadYaml(text))?.['users'];
    config.makePathsAbsolute(dirname(path));
    return { config, users: Array.isArray(users) ? users.map(user => rawUser(user, dirname(path))) : [] };
  } catch (error) {
    const { mark } = error as { readonly mark?: { readonly line: number } };
    return fail(`${path}${mark ? `:${mark.line + 1}` : ''}: is not a kubeconfig`);
  }
}

function rawUser(user: unknown, folder: string): RawUser {
  const fields = fieldsOf(user);
  return { name: textIn(fields, 'name'), fields: fieldsOf(fields?.['user']) ?? {}, folder };
}

/** A context, or the current one. As in kubectl, the first file that defines an entry wins. */
function contextNamed(wanted: string | undefined, parsedFiles: readonly Parsed[]) {
  const configs = parsedFiles.map(({ config }) => config);
  const current = wanted ?? configs.map(config => config.getCurrentContext()).find(name => name) ?? '';
  if (current === '') fail('has no current-context: choose one by kubectl config use-context');
  const contexts = configs.flatMap(config => config.getContexts());
  const clusters = configs.flatMap(config => config.getClusters());
  const users = configs.flatMap((config): readonly User[] => config.getUsers());
  const context = entryNamed(current, 'context', contexts);
  const cluster = entryNamed(context.cluster, 'cluster', clusters);
  const user = context.user ? entryNamed(context.user, 'user', users) : ANONYMOUS;
  const raw = parsedFiles.flatMap(file => file.users).find(({ name }) => name === user.name) ?? NO_RAW_USER;
  expectSupported(cluster, raw);
  // The library refuses http: servers without it.
  const skipTLSVerify = cluster.skipTLSVerify || cluster.server.startsWith('http:');
  return {
    cluster: { ...cluster, skipTLSVerify },
    user: { ...user, exec: execOf(user, raw, cluster) },
    tokenFile: tokenFileOf(raw),
  };
}

const ANONYMOUS: User = { name: '' };
const NO_RAW_USER: RawUser = { name: '', fields: {}, folder: '' };

function entryNamed<T extends Cluster | Context | User>(name: string, what: string, all: readonly T[]): T {
  return all.find(each => each.name === name) ?? fail(`has no ${what} ${JSON.stringify(name.slice(0, 100))}`);
}

function expectSupported({ server, proxyUrl }: Cluster, user: RawUser): void {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) fail('the server of the cluster is not an http or https URL');
  else if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    fail('the server of the cluster must be scheme, host, port and path alone');
  if (proxyUrl) fail('proxy-url is not supported: remove it');
  const unsupported = unsupportedField(user);
  if (unsupported !== undefined) fail(`${unsupported} of a user is not supported: remove it`);
}

function fail(message: string): never {
  throw new SettingError('KUBECONFIG', message);
}
