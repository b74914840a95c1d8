import { execFile } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { API_SERVER, NETWORK, NODE_NAME } from './network.ts';

const run = promisify(execFile);

/** The components with a token: file name, user, groups. */
const USERS = {
  admin: { user: 'admin', groups: ['system:masters'] },
  'controller-manager': { user: 'system:kube-controller-manager', groups: [] },
  scheduler: { user: 'system:kube-scheduler', groups: [] },
  kubelet: { user: `system:node:${NODE_NAME}`, groups: ['system:nodes'] },
  proxy: { user: 'system:kube-proxy', groups: [] },
  coredns: { user: 'system:coredns', groups: [] },
} as const;

/** A component with a token of its own. */
type UserName = keyof typeof USERS;

/** Certificates, keys and kubeconfigs of a cluster, all with mode 0600. */
export type Credentials = {
  readonly ca: string;
  readonly apiServer: KeyPair;
  /** The API server's client certificate for the kubelet. */
  readonly kubeletClient: KeyPair;
  /** The key that signs tokens of service accounts. */
  readonly serviceAccounts: { readonly privateKey: string; readonly publicKey: string };
  readonly tokens: string;
  readonly adminToken: string;
  readonly kubeconfigOf: (name: UserName) => string;
};

type KeyPair = { readonly certificate: string; readonly key: string };

/** Creates a CA and its certificates, and for each component a token and a kubeconfig. */
export async function makeCredentials(parent: string, server = API_SERVER): Promise<Credentials> {
  const folder = join(parent, 'pki');
  mkdirSync(folder, { mode: 0o700 });
  const ca = join(folder, 'ca.crt');
  await openssl(folder, [...NEW_KEY, ...SELF_SIGNED, '-keyout', 'ca.key', '-out', 'ca.crt']);
  const [apiServer, kubeletClient] = await Promise.all([
    sign(folder, 'api-server', '/CN=kube-apiserver', `subjectAltName=${API_SERVER_NAMES.join()}`),
    sign(folder, 'kubelet-client', '/O=system:masters/CN=kube-apiserver-kubelet-client'),
  ]);
  const tokens = Object.fromEntries(
    Object.keys(USERS).map(name => [name, randomBytes(24).toString('hex')]),
  ) as Record<UserName, string>;
  return {
    ca,
    apiServer,
    kubeletClient,
    serviceAccounts: makeServiceAccountKeys(folder),
    tokens: writeTokens(folder, tokens),
    adminToken: tokens.admin,
    kubeconfigOf: name => writeKubeconfig(folder, { server, ca, name, token: tokens[name] }),
  };
}

const API_SERVER_NAMES = [
  ...[NETWORK.inner, NETWORK.bridgeAddress, NETWORK.apiService, '127.0.0.1'].map(address => `IP:${address}`),
  ...[
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    `kubernetes.default.svc.${NETWORK.domain}`,
  ].map(name => `DNS:${name}`),
];

const NEW_KEY = [
  'req',
  '-x509',
  '-nodes',
  '-days',
  '30',
  '-newkey',
  'EC',
  '-pkeyopt',
  'ec_paramgen_curve:P-256',
];
const SELF_SIGNED = ['-subj', '/CN=mesh-gateway-cluster', '-addext', 'keyUsage=critical,keyCertSign'];

async function sign(
  folder: string,
  name: string,
  subject: string,
  ...extensions: readonly string[]
): Promise<KeyPair> {
  const files = { certificate: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  const usage = [
    'basicConstraints=critical,CA:FALSE',
    'extendedKeyUsage=serverAuth,clientAuth',
    ...extensions,
  ];
  const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-subj', subject];
  const added = usage.flatMap(extension => ['-addext', extension]);
  await openssl(folder, [...NEW_KEY, ...signer, ...added, '-keyout', files.key, '-out', files.certificate]);
  return files;
}

async function openssl(folder: string, args: readonly string[]): Promise<void> {
  await run('sh', ['-c', 'umask 077 && exec openssl "$@"', 'openssl', ...args], { cwd: folder });
}

function makeServiceAccountKeys(folder: string): Credentials['serviceAccounts'] {
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  return {
    privateKey: writeSecret(join(folder, 'service-accounts.key'), privateKey),
    publicKey: writeSecret(join(folder, 'service-accounts.pub'), publicKey),
  };
}

function writeTokens(folder: string, tokens: Readonly<Record<UserName, string>>): string {
  const lines = Object.entries(USERS).map(
    ([name, { user, groups }]) => `${tokens[name as UserName]},${user},${name},"${groups.join()}"\n`,
  );
  return writeSecret(join(folder, 'tokens.csv'), lines.join(''));
}

type Login = {
  readonly server: string;
  readonly ca: string;
  readonly name: UserName;
  readonly token: string;
};

function writeKubeconfig(folder: string, { server, ca, name, token }: Login): string {
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'mesh', cluster: { server, 'certificate-authority': ca } }],
    users: [{ name, user: { token } }],
    contexts: [{ name: 'mesh', context: { cluster: 'mesh', user: name } }],
    'current-context': 'mesh',
  };
  return writeSecret(join(folder, `${name}.kubeconfig`), JSON.stringify(kubeconfig, null, 2));
}

function writeSecret(path: string, text: string): string {
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
