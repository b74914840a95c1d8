/** `npm run control-api`: the simulator of a mesh control API, until Ctrl-C. */
import { parseArgs } from 'node:util';
import { startControlApi } from '../control-api/control-api.ts';
import { tailnetBehind } from '../control-api/real-tailnet.ts';
import { EXIT, runMain, stopOnSignals } from './run-main.ts';
import { assignments } from './variables.ts';

const USAGE = `npm run control-api [-- OPTIONS]

  --dialect NAME    vendor or headscale; vendor if not given
  --host ADDRESS    where it listens; 127.0.0.1 if not given
  --port PORT       a free one if not given
  --domain DOMAIN   of the tailnet; example.ts.net if not given
  --devices NUMBER  how many devices it has; none if not given
  --tailnet URL     the admin endpoint of a lab's or cluster's tailnet (TAILNET_ADMIN), whose
                    devices and join keys it shows and changes
  --seed NUMBER     from which all IDs and secrets follow; 1 if not given

It prints its address and the credentials of an OAuth client with the scopes all and the tag tag:mesh.
`;

const text = { type: 'string' } as const;

function numberOf(name: string, value: string): number {
  if (/^\d+$/.test(value)) return Number(value);
  throw new Error(`--${name} ${value}: give a number\n${USAGE}`);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      dialect: text,
      host: text,
      port: text,
      domain: text,
      devices: text,
      seed: text,
      tailnet: text,
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return EXIT.done;
  }
  const { dialect = 'vendor', host = '127.0.0.1', port = '0', domain = 'example.ts.net' } = values;
  if (dialect !== 'vendor' && dialect !== 'headscale')
    throw new Error(`--dialect ${dialect}: unknown\n${USAGE}`);
  const seed = numberOf('seed', values.seed ?? '1');
  const stop = stopOnSignals();
  const { tailnet, devices = '0' } = values;
  if (tailnet !== undefined && devices !== '0') throw new Error(`give --devices or --tailnet\n${USAGE}`);
  const behind = tailnet === undefined ? {} : { behind: tailnetBehind(tailnet) };
  const api = await startControlApi({ dialect, host, port: numberOf('port', port), domain, seed, ...behind });
  const client = api.addClient(['all'], ['tag:mesh']);
  for (let number = 1; number <= numberOf('devices', devices); number++)
    api.addDevice({ hostname: `device-${number}`, tags: ['tag:web'] });
  const variables = [
    ['CONTROL_API_URL', api.url],
    ['MESH_OAUTH_CLIENT_ID', client.id],
    ['MESH_OAUTH_CLIENT_SECRET', client.secret],
  ];
  console.log(assignments(variables).join('\n'));
  await new Promise(resolve => stop.addEventListener('abort', resolve));
  await api.close();
  return EXIT.done;
}

await runMain('control-api', main);
