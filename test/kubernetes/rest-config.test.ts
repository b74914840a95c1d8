import { describe, expect, it } from 'vitest';
import { CredentialsError } from '../../src/kubernetes/auth/rest-config.ts';
import { restConfigSource } from '../../src/kubernetes/auth/config-source.ts';
import type { RestConfig } from '../../src/kubernetes/auth/rest-config.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';
import { kubeconfigText, makeFiles } from '../support/kubernetes/wire-kubeconfig.ts';
import type { Files, KubeconfigOptions } from '../support/kubernetes/wire-kubeconfig.ts';

const SECRET = 'hidden-thing';

const base64 = (text: string) => Buffer.from(text).toString('base64');

async function accountOf(
  kubeconfig: string,
  environment: Readonly<Record<string, string>> = {},
  serviceAccountFolder = 'no-folder',
): Promise<RestConfig> {
  const options = {
    kubeconfig,
    environment,
    serviceAccountFolder,
    clock: systemClock,
    now: () => new Date(),
  };
  const configSource = await restConfigSource(options);
  return await configSource.load('refresh');
}

async function refusalOf(account: Promise<unknown>): Promise<string> {
  const error = await account.catch((thrown: unknown) => thrown);
  if (!(error instanceof SettingError) && !(error instanceof CredentialsError)) throw error;
  expect(error.message).not.toContain(SECRET);
  return error.message;
}

type Case = KubeconfigOptions & { readonly what: string; readonly account: Partial<RestConfig> };

const SERVER = { server: 'https://a:6443/' };

const CASES: readonly Case[] = [
  {
    what: 'nothing but a server',
    cluster: SERVER,
    account: { server: 'https://a:6443', tls: {}, headers: {} },
  },
  { what: 'a path', cluster: { server: 'https://a/k8s/c/' }, account: { server: 'https://a/k8s/c' } },
  {
    what: 'a server without TLS',
    cluster: { server: 'http://a:8001' },
    account: { server: 'http://a:8001' },
  },
  {
    what: 'a token',
    cluster: SERVER,
    user: { token: 't\n' },
    account: { headers: { authorization: 'Bearer t' } },
  },
  {
    what: 'a file with a token, by a path from its own folder, which counts before a token',
    cluster: SERVER,
    user: { token: 'old', tokenFile: 'token' },
    account: { headers: { authorization: 'Bearer of-file' } },
  },
  {
    what: 'a name and a password',
    cluster: SERVER,
    user: { username: 'a', password: 'b' },
    account: { headers: { authorization: `Basic ${base64('a:b')}` } },
  },
  {
    what: 'a user to impersonate',
    cluster: SERVER,
    user: { token: 't', as: 'b' },
    account: { headers: { authorization: 'Bearer t', 'impersonate-user': 'b' } },
  },
  {
    what: 'certificates by files',
    cluster: { ...SERVER, 'certificate-authority': 'ca' },
    user: { 'client-certificate': 'cert', 'client-key': 'key' },
    account: { tls: { ca: 'CA', cert: 'CERT', key: 'KEY' } },
  },
  {
    what: 'certificates in place',
    cluster: { ...SERVER, 'certificate-authority-data': base64('ca') },
    user: { 'client-certificate-data': base64('cert'), 'client-key-data': base64('key') },
    account: { tls: { ca: 'ca', cert: 'cert', key: 'key' } },
  },
  {
    what: 'a name and no verification',
    cluster: { ...SERVER, 'tls-server-name': 'b', 'insecure-skip-tls-verify': true },
    account: { tls: { servername: 'b', rejectUnauthorized: false } },
  },
  {
    what: 'a provider with a token of its own',
    cluster: SERVER,
    user: {
      'auth-provider': { name: 'gcp', config: { 'access-token': 'g', expiry: '2999-01-01T00:00:00Z' } },
    },
    account: { headers: { authorization: 'Bearer g' } },
  },
];

function writeAll(files: Files, options: KubeconfigOptions): string {
  files.write('token', 'of-file\n');
  for (const name of ['ca', 'cert', 'key']) files.write(name, name.toUpperCase());
  return files.write('config', kubeconfigText(options));
}

describe('a kubeconfig', () => {
  it.each(CASES)('with $what is accepted', async ({ account, ...options }) => {
    expect(await accountOf(writeAll(makeFiles(), options))).toMatchObject(account);
  });

  it.each<readonly [string, KubeconfigOptions]>([
    ['KUBECONFIG: has no cluster "c"', { cluster: {} }],
    ['KUBECONFIG: the server of the cluster is not an http or https URL', { cluster: { server: 'a:6443' } }],
    [
      'KUBECONFIG: the server of the cluster must be scheme, host, port and path alone',
      { cluster: { server: `https://a:${SECRET}@b` } },
    ],
    [
      'KUBECONFIG: proxy-url is not supported: remove it',
      { cluster: { ...SERVER, 'proxy-url': `http://a:${SECRET}@b` } },
    ],
    [
      'KUBECONFIG: as-groups of a user is not supported: remove it',
      { cluster: SERVER, user: { as: 'a', 'as-groups': ['b'] } },
    ],
    [
      'KUBECONFIG: as-uid of a user is not supported: remove it',
      { cluster: SERVER, user: { as: 'a', 'as-uid': 'b' } },
    ],
    ['the credentials are not valid in a header', { cluster: SERVER, user: { token: `${SECRET}\r\nx: y` } }],
    ['exec of the user printed no credentials', { cluster: SERVER, user: { exec: {} } }],
    [
      'the auth-provider of the user is unknown, or returned no token',
      { cluster: SERVER, user: { 'auth-provider': { name: SECRET, config: { a: SECRET } } } },
    ],
  ])('is refused: %s', async (message, options) => {
    expect(await refusalOf(accountOf(writeAll(makeFiles(), options)))).toBe(message);
  });

  it('that names a missing file fails with its path', async () => {
    const files = makeFiles();
    const config = files.write('config', kubeconfigText({ cluster: SERVER, user: { tokenFile: 'none' } }));
    expect(await refusalOf(accountOf(config))).toBe(`${files.path('none')} cannot be read (ENOENT)`);
  });

  it.each([
    ['is not a kubeconfig', ''],
    ['has no current-context', '{}'],
    ['has no context "a"', 'current-context: a'],
    ['has no context "__proto__"', 'current-context: __proto__'],
    ['has no cluster "b"', 'current-context: a\ncontexts: [{name: a, context: {cluster: b}}]'],
    [
      'has no user "c"',
      'current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\nclusters: [{name: b, cluster: {server: "https://a"}}]',
    ],
    [': is not a kubeconfig', `a: 1\n  ${SECRET}: [`],
    ['has no context', `current-context: a\ncontexts: [3, null, {name: 4}, {context: {}}]\nusers: {a: b}`],
  ])('that is invalid is refused: %s', async (message, text) => {
    const config = makeFiles().write('config', text);
    expect(await refusalOf(accountOf(config))).toContain(message);
  });

  it('in several files uses the first entry of a name, and skips missing files', async () => {
    const files = makeFiles();
    const entry = (name: string, item: object) => ({ name, ...item });
    const first = { 'current-context': 'x', clusters: [entry('c', { cluster: { server: 'https://one' } })] };
    const second = {
      'current-context': 'y',
      clusters: [entry('c', { cluster: { server: 'https://two' } })],
      contexts: [
        entry('x', { context: { cluster: 'c', user: 'u' } }),
        entry('y', { context: { cluster: 'c' } }),
      ],
    };
    const third = {
      users: [entry('u', { user: { token: 'three' } }), entry('u', { user: { token: 'again' } })],
    };
    const paths = [
      files.write('one', JSON.stringify(first)),
      files.path('missing'),
      files.write('two', JSON.stringify(second)),
      '',
      files.write('three', JSON.stringify(third)),
    ];
    expect(await accountOf(paths.join(':'))).toMatchObject({
      server: 'https://one',
      headers: { authorization: 'Bearer three' },
    });
  });

  it('that is the only one must exist', async () => {
    const path = makeFiles().path('missing');
    expect(await refusalOf(accountOf(path))).toBe(`KUBECONFIG: ${path} cannot be read (ENOENT)`);
    expect(await refusalOf(accountOf(`${path}:${path}2`))).toBe('KUBECONFIG: none of its files exists');
  });
});

describe('a pod', () => {
  it.each([
    ['10.0.0.1', 'https://10.0.0.1:443'],
    ['fd00::1', 'https://[fd00::1]:443'],
  ])('uses the API server %s and the service account of its pod', async (host, server) => {
    const files = makeFiles();
    files.write('ca.crt', 'CA');
    files.write('token', 't');
    const environment = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: '443' };
    expect(await accountOf('', environment, files.folder)).toEqual({
      server,
      tls: { ca: 'CA' },
      headers: { authorization: 'Bearer t' },
    });
  });

  it('without a service account fails with the missing file', async () => {
    const environment = { KUBERNETES_SERVICE_HOST: 'a', KUBERNETES_SERVICE_PORT: '1' };
    const message = await refusalOf(accountOf('', environment, makeFiles().folder));
    expect(message).toMatch(/(ca\.crt|token) cannot be read \(ENOENT\)$/);
  });

  it('is required where there is no kubeconfig', async () => {
    expect(await refusalOf(accountOf(' '))).toBe('KUBECONFIG: is needed outside of a cluster: name a file');
  });
});
