import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/api/clock.ts';
import { restConfigSource } from '../../src/kubernetes/auth/config-source.ts';
import type { KubeTransport } from '../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { eventually } from '../support/eventually.ts';
import { AUTHORITY, CLIENTS, OTHER_AUTHORITY } from '../support/kubernetes/wire-certificates.ts';
import { kubeconfigText, makeFiles, writeProgram } from '../support/kubernetes/wire-kubeconfig.ts';
import type { Files, KubeconfigOptions } from '../support/kubernetes/wire-kubeconfig.ts';
import { serveWire, WIRES } from '../support/kubernetes/wire-server.ts';
import type { Exchange, WireServer } from '../support/kubernetes/wire-server.ts';
import { kubeErrorOf, TOKEN, wireTransport } from '../support/kubernetes/wire-transport.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const READ = { verb: 'get', path: '/a' } as const;
const WRITE = { verb: 'create', path: '/a' } as const;

/** A transport with a kubeconfig file. */
async function transportBy(
  kubeconfig: string,
  clock: Clock = systemClock,
  execTimeoutMs = 60_000,
): Promise<KubeTransport> {
  const configSource = await restConfigSource({ kubeconfig, environment: {}, clock, execTimeoutMs });
  return wireTransport('', { configSource, clock });
}

function writeConfig(
  files: Files,
  { url }: Pick<WireServer, 'url'>,
  user: object,
  cluster: object = {},
): string {
  const options: KubeconfigOptions = {
    cluster: { server: url, 'certificate-authority': 'ca', ...cluster },
    user: { ...user },
  };
  return files.write('config', kubeconfigText(options));
}

/** Responds to the currently valid token with its name. */
function serveBearer(good: () => string): (each: Exchange) => void {
  return each => {
    const isGood = each.headers['authorization'] === `Bearer ${good()}`;
    each.respond(isGood ? 200 : 401, isGood ? JSON.stringify(good()) : '{"kind":"Status","message":"who?"}');
  };
}

function filesWith(ca: string): Files {
  const files = makeFiles();
  files.write('ca', ca);
  return files;
}

describe.each(WIRES)('a token in a file, over %s', wire => {
  it('is read again after a 401, and the request is sent again', async () => {
    let good = 'one';
    const server = await serveWire(wire, { respond: serveBearer(() => good) });
    const files = filesWith(AUTHORITY.ca);
    files.write('token', 'one');
    const transport = await transportBy(writeConfig(files, server, { tokenFile: 'token' }));
    expect(await transport.send(READ)).toBe('one');
    good = 'two';
    files.write('token', 'two');
    const pending = Array.from({ length: 20 }, (_, n) => transport.send(n % 2 === 0 ? READ : WRITE));
    expect(new Set(await Promise.all(pending))).toEqual(new Set(['two']));
    expect(server.seen.length).toBeLessThanOrEqual(1 + 40);
    expect(await transport.send(READ)).toBe('two');
  });

  it('that has not changed is not sent again after a 401', async () => {
    const server = await serveWire(wire, { respond: serveBearer(() => 'another') });
    const files = filesWith(AUTHORITY.ca);
    files.write('token', TOKEN);
    const transport = await transportBy(writeConfig(files, server, { tokenFile: 'token' }));
    const error = await kubeErrorOf(transport.send(READ));
    expect([error.reason, error.message]).toEqual(['Unauthorized', 'get /a: 401 who?']);
    expect(server.seen).toHaveLength(1);
  });

  it('is read again every 10 s, and is kept while the file is missing', async () => {
    const clock = new VirtualClock();
    const server = await serveWire(wire, {
      respond: each => each.respond(200, JSON.stringify(each.headers)),
    });
    const files = filesWith(AUTHORITY.ca);
    files.write('token', 'one');
    const transport = await transportBy(writeConfig(files, server, { tokenFile: 'token' }), clock);
    expect(await transport.send(READ)).toMatchObject({ authorization: 'Bearer one' });
    rmSync(files.path('token'));
    await clock.advance(11_000);
    expect(await transport.send(READ)).toMatchObject({ authorization: 'Bearer one' });
    files.write('token', 'two');
    await clock.advance(11_000);
    expect(await transport.send(READ)).toMatchObject({ authorization: 'Bearer two' });
  });

  it('that does not exist at the start is Unauthorized until it does', async () => {
    const server = await serveWire(wire, { respond: serveBearer(() => 'one') });
    const files = filesWith(AUTHORITY.ca);
    const transport = await transportBy(writeConfig(files, server, { tokenFile: 'token' }));
    const error = await kubeErrorOf(transport.send(READ));
    expect(error.reason).toBe('Unauthorized');
    expect(error.message).toContain('token cannot be read (ENOENT)');
    files.write('token', 'one');
    expect(await transport.send(READ)).toBe('one');
  });
});

describe('certificates', () => {
  const respond = (each: Exchange) => each.respond(200, JSON.stringify(each.client ?? 'no client'));

  it('of another authority are trusted as soon as the file has it', async () => {
    const first = await serveWire('HTTPS', { respond });
    const files = filesWith(AUTHORITY.ca);
    const transport = await transportBy(writeConfig(files, first, {}));
    await transport.send(READ);
    await first.close();
    const { port } = first;
    await serveWire('HTTPS', { port, authority: OTHER_AUTHORITY, respond });
    const stranger = kubeErrorOf(transport.send(READ));
    expect((await stranger).reason).toBe('Unreachable');
    files.write('ca', AUTHORITY.ca + OTHER_AUTHORITY.ca);
    expect(await transport.send(WRITE)).toBe('no client');
  });

  it.each<readonly [string, object, object, string | RegExp]>([
    ['by an address that is in it', {}, {}, 'no client'],
    ['by a name that is in it', {}, { 'tls-server-name': 'kube.test' }, 'no client'],
    ['by a name that is not in it', {}, { 'tls-server-name': 'kube.other' }, /Unreachable .*kube\.other/],
    [
      'of an authority that is not known',
      {},
      { 'certificate-authority': 'other' },
      /Unreachable .*SELF_SIGNED/,
    ],
    [
      'that are not verified',
      {},
      { 'certificate-authority': 'other', 'insecure-skip-tls-verify': true },
      'no client',
    ],
    ['that are none', {}, { 'certificate-authority': 'none' }, /Unreachable/],
    ['of a client', { 'client-certificate': 'cert', 'client-key': 'key' }, {}, 'alice'],
    [
      'of a client without its key',
      { 'client-certificate': 'cert', 'client-key': 'none' },
      {},
      /Unreachable/,
    ],
  ])('%s', async (_what, user, cluster, outcome) => {
    const server = await serveWire('HTTPS', { respond });
    const files = filesWith(AUTHORITY.ca);
    files.write('other', OTHER_AUTHORITY.ca);
    files.write('cert', CLIENTS.alice.cert);
    files.write('key', CLIENTS.alice.key);
    files.write('none', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    const transport = await transportBy(writeConfig(files, server, user, cluster));
    if (typeof outcome === 'string') {
      expect(await transport.send(READ)).toBe(outcome);
    } else {
      const error = await kubeErrorOf(transport.send(READ));
      expect(`${error.reason} ${error.message}`).toMatch(outcome);
    }
  });

  it('of a client that change are used for new requests, and streams continue', async () => {
    const clock = new VirtualClock();
    const server = await serveWire('HTTPS', {
      respond: each => {
        if (each.path === '/watch') {
          each.begin(200);
          each.write('0\n');
        } else {
          respond(each);
        }
      },
    });
    const files = filesWith(AUTHORITY.ca);
    files.write('cert', CLIENTS.alice.cert);
    files.write('key', CLIENTS.alice.key);
    const config = writeConfig(files, server, { 'client-certificate': 'cert', 'client-key': 'key' });
    const transport = await transportBy(config, clock);
    const followed = (await transport.stream({ verb: 'watch', path: '/watch' }))[Symbol.asyncIterator]();
    expect(await followed.next()).toMatchObject({ value: 0 });
    files.write('cert', CLIENTS.bob.cert);
    files.write('key', CLIENTS.bob.key);
    await clock.advance(11_000);
    expect(await transport.send(READ)).toBe('bob');
    server.seen[0]?.write('1\n');
    expect(await followed.next()).toMatchObject({ value: 1 });
    server.seen[0]?.end();
    expect(await followed.next()).toMatchObject({ done: true });
    await eventually(() => expect(server.sockets.size).toBe(1));
  });
});

it('another server in a kubeconfig is used when the old one is down', async () => {
  const respond = (each: Exchange) => each.respond(200, '1');
  const [first, second] = await Promise.all([
    serveWire('HTTPS', { respond }),
    serveWire('HTTP', { respond }),
  ]);
  const files = filesWith(AUTHORITY.ca);
  const transport = await transportBy(writeConfig(files, first, {}));
  await transport.send(READ);
  await first.close();
  writeConfig(files, { url: `${second.url}/behind/a/path/` }, {});
  await kubeErrorOf(transport.send(WRITE)).catch(() => undefined);
  expect(await transport.send(WRITE)).toBe(1);
  expect(second.seen.at(-1)?.path).toBe('/behind/a/path/a');
});

/** Prints another token at each run. */
const CREDENTIAL = String.raw`echo "{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"run-$runs\"}}"`;

describe('an exec program', () => {
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './login', args: ['a'] };
  const echo = (each: Exchange) =>
    each.respond(200, JSON.stringify(each.headers['authorization'] ?? each.client));

  it('is run once, and again after a 401', async () => {
    let good = 'run-1';
    const clock = new VirtualClock();
    const server = await serveWire('HTTPS', { respond: serveBearer(() => good) });
    const files = filesWith(AUTHORITY.ca);
    const runs = writeProgram(files, 'login', CREDENTIAL);
    const transport = await transportBy(writeConfig(files, server, { exec }), clock);
    expect(await Promise.all([READ, READ, READ].map(each => transport.send(each)))).toEqual(
      Array(3).fill('run-1'),
    );
    await clock.advance(1e7);
    expect(await transport.send(READ)).toBe('run-1');
    expect(runs()).toBe(1);
    good = 'run-2';
    expect(await Promise.all([READ, READ, WRITE].map(each => transport.send(each)))).toEqual(
      Array(3).fill('run-2'),
    );
    expect(runs()).toBe(2);
  });

  it('is not run again because the server is down', async () => {
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    const runs = writeProgram(files, 'login', CREDENTIAL);
    const transport = await transportBy(writeConfig(files, server, { exec }));
    await transport.send(READ);
    await server.close();
    for (let count = 0; count < 5; count++) await kubeErrorOf(transport.send(READ));
    expect(runs()).toBe(1);
  });

  it('that fails is not run again within a second', async () => {
    const clock = new VirtualClock();
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    const runs = writeProgram(files, 'login', `if [ "$runs" -lt 2 ]; then exit 1; fi; ${CREDENTIAL}`);
    const transport = await transportBy(writeConfig(files, server, { exec }), clock);
    for (let count = 0; count < 10; count++) {
      expect((await kubeErrorOf(transport.send(READ))).reason).toBe('Unauthorized');
    }
    expect(runs()).toBe(1);
    await clock.advance(1000);
    expect(await transport.send(READ)).toBe('Bearer run-2');
  });

  it('whose credentials are refused is not run again within a second', async () => {
    const clock = new VirtualClock();
    const server = await serveWire('HTTPS', { respond: serveBearer(() => 'another') });
    const files = filesWith(AUTHORITY.ca);
    const runs = writeProgram(files, 'login', CREDENTIAL);
    const transport = await transportBy(writeConfig(files, server, { exec }), clock);
    for (let count = 0; count < 10; count++) {
      expect((await kubeErrorOf(transport.send(READ))).reason).toBe('Unauthorized');
    }
    expect(runs()).toBe(1);
    await clock.advance(1000);
    await kubeErrorOf(transport.send(READ));
    expect(runs()).toBe(2);
  });

  it('gets KUBERNETES_EXEC_INFO, its arguments and its environment', async () => {
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    const script = `echo "$1 $GIVEN $KUBERNETES_EXEC_INFO" > '${files.path('printed')}'\n${CREDENTIAL}`;
    writeProgram(files, 'login', script);
    const env = [{ name: 'GIVEN', value: 'b' }];
    const user = { exec: { ...exec, env, provideClusterInfo: true } };
    await (await transportBy(writeConfig(files, server, user))).send(READ);
    const printed = files.read('printed');
    expect(printed).toMatch(/^a b \{"apiVersion":"client.authentication.k8s.io\/v1","kind":"ExecCredential"/);
    expect(printed).toContain(`"interactive":false,"cluster":{"server":"${server.url}"`);
  });

  it('may print a certificate', async () => {
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    const { cert, key } = CLIENTS.bob;
    const status = { clientCertificateData: cert, clientKeyData: key };
    const credential = files.write('credential', JSON.stringify({ kind: 'ExecCredential', status }));
    writeProgram(files, 'login', `cat '${credential}'`);
    expect(await (await transportBy(writeConfig(files, server, { exec }))).send(READ)).toBe('bob');
  });

  it.each([
    ['printed no credentials', `echo ${TOKEN}; echo ${TOKEN} >&2; exit 3`],
    ['printed no credentials', 'kill -9 $$'],
    ['printed no credentials', `echo '{"status":{"token":"${TOKEN}'`],
    ['printed no credentials', 'echo null'],
    ['printed no credentials', 'echo \'{"status":{"clientCertificateData":"a"}}\''],
    ['printed no credentials', 'yes'],
  ])('that %s is Unauthorized, without secrets in the error', async (message, script) => {
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    writeProgram(files, 'login', script);
    const error = await kubeErrorOf((await transportBy(writeConfig(files, server, { exec }))).send(READ));
    expect(error.reason).toBe('Unauthorized');
    expect(error.message).toBe(`get /a: ${files.path('login')} ${message}`);
    expect(server.seen).toEqual([]);
  });

  it.each([
    [
      'there is none',
      { ...exec, command: 'no-such-program' },
      'no-such-program printed no credentials (ENOENT)',
    ],
  ])('where %s is Unauthorized', async (_what, user, message) => {
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    const transport = await transportBy(writeConfig(files, server, { exec: user }));
    const error = await kubeErrorOf(transport.send(READ));
    expect(error.reason).toBe('Unauthorized');
    expect(error.message).toContain(message);
  });

  it('that never ends is killed', async () => {
    const server = await serveWire('HTTPS', { respond: echo });
    const files = filesWith(AUTHORITY.ca);
    writeProgram(files, 'login', 'exec sleep 1000');
    const access = await transportBy(writeConfig(files, server, { exec }), systemClock, 100);
    const error = await kubeErrorOf(access.send(READ));
    expect([error.reason, error.message]).toEqual([
      'Unauthorized',
      `get /a: ${files.path('login')} printed no credentials`,
    ]);
  });
});
