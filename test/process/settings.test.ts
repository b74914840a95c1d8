import { describe, expect, it } from 'vitest';
import {
  parseChoice,
  parseOptional,
  parseRequired,
  parseTarget,
  readSettings,
} from '../../src/process/settings.ts';
import { parseAddress } from '../../src/telemetry/address.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';
import { readStandaloneSettings, standaloneHelp } from '../../src/standalone.ts';

const SETTINGS = {
  folder: { name: 'THE_FOLDER', help: 'a folder', parse: parseRequired('name one') },
  address: { name: 'THE_ADDRESS', help: 'an address', default: ':80', parse: parseAddress },
  way: { name: 'WAY', help: 'a way', default: 'Proxy', parse: parseChoice(['Proxy', 'Direct']) },
  target: { name: 'TARGET', help: 'a target', parse: parseTarget },
  more: { name: 'MORE', help: 'more', parse: parseOptional },
} as const;

function read(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return readSettings(SETTINGS, { args, environment: { THE_FOLDER: 'a', ...environment } });
}

function refusalOf(read_: () => unknown): string {
  try {
    return `was read as ${JSON.stringify(read_())}`;
  } catch (error) {
    if (error instanceof SettingError) return error.message;
    throw error;
  }
}

describe('settings', () => {
  it('have their defaults where nothing is set', () => {
    expect(read([])).toEqual({
      folder: 'a',
      address: { port: 80 },
      way: 'Proxy',
      target: undefined,
      more: undefined,
    });
  });

  it('are read from variables, which flags override, the last of each', () => {
    expect(read([], { WAY: 'direct', THE_ADDRESS: '' })).toMatchObject({
      way: 'Direct',
      address: { port: 80 },
    });
    expect(
      read(['--way', 'Proxy', '--the-folder=b=c', '--more', 'x', '--more=y'], { WAY: 'Direct' }),
    ).toMatchObject({
      way: 'Proxy',
      folder: 'b=c',
      more: 'y',
    });
  });

  const REFUSED: readonly (readonly [args: readonly string[], message: string])[] = [
    [['--the-adress', ':1'], '--the-adress: there is no such flag; did you mean --the-address?'],
    [['--xyzzy-plugh', '1'], '--xyzzy-plugh: there is no such flag; see --help'],
    [['folder'], 'folder: is not a flag: every setting is one, such as --log-level debug'],
    [['-x'], '-x: there is no such flag; see --help'],
    [['--way'], '--way: needs a value after it'],
    [['--way', 'around'], '--way: "around" is not one of Proxy, Direct'],
    [['--the-folder='], '--the-folder: is not set: name one'],
    [
      ['--target', '5005'],
      '--target: "5005" is not an address to connect to; write a host and a port, such as 127.0.0.1:5005',
    ],
    [
      ['--target', 'a:0'],
      '--target: "a:0" is not an address to connect to; write a host and a port, such as 127.0.0.1:5005',
    ],
    [
      ['--target', 'a:65536'],
      '--target: "a:65536" is not an address to connect to; write a host and a port, such as 127.0.0.1:5005',
    ],
  ];
  it.each(REFUSED)('%j are refused', (args, message) => {
    expect(refusalOf(() => read(args))).toBe(message);
  });

  it('name the variable where that is wrong', () => {
    expect(refusalOf(() => read([], { WAY: 'around' }))).toBe('WAY: "around" is not one of Proxy, Direct');
  });
});

describe('EXTERNAL_TARGETS_ALLOW', () => {
  const allowed = (text: string) =>
    readStandaloneSettings({
      args: ['--resources-dir', 'x', '--external-targets-allow', text],
      environment: {},
    }).externalTargetsAllow;

  it('lists hosts, addresses and CIDRs', () => {
    const entries = ['db.corp.example', 'localhost', '10.1.2.3', '10.1.0.0/16', 'fd12::1', 'fd12::/16'];
    expect(allowed(` ${entries.join(' , ')},`)).toEqual(entries);
    expect(allowed('')).toEqual([]);
  });

  it.each(['10.1.0.0/33', '10.1.2', '*.corp.example', 'db.corp.example:443', '::ffff:10.1.2.3', 'a b'])(
    'refuses %s',
    entry => {
      expect(refusalOf(() => allowed(`db.corp.example,${entry}`))).toBe(
        `--external-targets-allow: ${JSON.stringify(entry)} is not a host name, IP address or CIDR; write such as db.corp.example, 10.1.2.3 or 10.1.0.0/16`,
      );
    },
  );
});

describe('REFUSED_ADDRESSES', () => {
  const refused = (text: string) =>
    readStandaloneSettings({ args: ['--resources-dir', 'x', '--refused-addresses', text], environment: {} })
      .refusedAddresses;

  it('lists addresses and CIDRs', () => {
    const entries = ['100.64.0.1', '100.64.0.0/16', 'fd7a:115c:a1e0:ab::/64'];
    expect(refused(` ${entries.join(' , ')},`)).toEqual(entries);
    expect(refused('')).toEqual([]);
  });

  it.each(['100.64.0.0/33', '100.64.0', 'db.corp.example', '::ffff:100.64.0.1', 'a b'])(
    'refuses %s',
    entry => {
      expect(refusalOf(() => refused(`100.64.0.1,${entry}`))).toBe(
        `--refused-addresses: ${JSON.stringify(entry)} is not an IP address or CIDR; write such as 100.64.0.1 or 100.64.0.0/16`,
      );
    },
  );
});

describe('ENDPOINT_METRIC_LABELS', () => {
  const labels = (text: string) =>
    readStandaloneSettings({
      args: ['--resources-dir', 'x', '--endpoint-metric-labels', text],
      environment: {},
    }).endpointMetricLabels;

  it('lists keys of metadata', () => {
    expect(labels(' region , example.com/zone,')).toEqual(['region', 'example.com/zone']);
    expect(labels('')).toEqual([]);
  });

  it.each([
    ['a b', '"a b" is not a key that can be a label; write such as region,zone'],
    ['zone,a-b,a.b', '"a.b" would be the label of an earlier key too: remove one'],
    ['1,2,3,4,5,6,7,8,9', 'has 9 keys: the most is 8'],
  ])('refuses %s', (text, message) => {
    expect(refusalOf(() => labels(text))).toBe(`--endpoint-metric-labels: ${message}`);
  });
});

describe('the settings of standalone', () => {
  it('have a flag for each variable, and help for all', () => {
    const help = standaloneHelp({});
    const contract = [
      'CONTROLLER_MAX_CONCURRENT_RECONCILES',
      'SYNC_PERIOD',
      'LOG_LEVEL',
      'MAX_MESSAGE_SIZE',
      'GRPC_KEEPALIVE_TIME',
    ];
    const ours = [
      'METRICS_ADDRESS',
      'HEALTH_ADDRESS',
      'GRPC_ADDRESS',
      'EXTENSION_SERVER_ADDRESS',
      'RESOURCES_DIR',
      'STATE_DIR',
      'GATEWAY_DIR',
      'DATA_PATH',
      'HEALTH_CHECK_CONCURRENCY',
      'ENDPOINT_METRIC_LABELS',
      'EXTERNAL_TARGETS_ALLOW',
      'REFUSED_ADDRESSES',
      'KUBERNETES_SERVICE_HOST',
      'PPROF',
    ];
    for (const name of [...contract, ...ours]) {
      expect(help).toContain(`${name}\n`);
      expect(help).toContain(`--${name.toLowerCase().replaceAll('_', '-')} `);
    }
  });

  it('have their defaults but for the folder, which is required', () => {
    expect(refusalOf(() => readStandaloneSettings({ args: [], environment: {} }))).toContain(
      'RESOURCES_DIR: is not set',
    );
    const settings = readStandaloneSettings({
      args: ['--resources-dir', 'x'],
      environment: { XDG_STATE_HOME: '/state' },
    });
    expect(settings).toEqual({
      resourcesDir: 'x',
      stateDir: '/state/mesh-gateway',
      gatewayDir: '/state/mesh-gateway-envoy-gateway',
      extensionServerAddress: undefined,
      concurrency: 10,
      syncPeriodMs: 30_000,
      grpcAddress: { port: 5005 },
      dataPath: 'Proxy',
      maxMessageSize: 100_000_000,
      healthCheckConcurrency: 256,
      endpointMetricLabels: [],
      externalTargetsAllow: [],
      refusedAddresses: [],
      apiServer: undefined,
      keepaliveMs: 30_000,
      logLevel: 'info',
      metricsAddress: { port: 8080 },
      healthAddress: { port: 8081 },
      pprof: 'on',
    });
  });
});
