import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandLine, runCommand } from '../support/lab/command-line.ts';
import { ownFolder } from '../support/lab/lab.ts';
import type { OwnFolder } from '../support/lab/lab.ts';

let own: OwnFolder;
beforeAll(() => {
  own = ownFolder();
});
afterAll(async () => {
  await own.end();
});

const lab = (...args: readonly string[]) => runCommand(commandLine(...args, '--folder', own.folder.path));

/** The variables among what was printed. */
function variablesIn(output: string): Readonly<Record<string, string>> {
  const lines = [...output.matchAll(/^([A-Z_\d]+)=(.*)$/gm)];
  return Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]));
}

describe('the command line of the lab', () => {
  it('says that nothing is up, and how that is changed', async () => {
    for (const command of ['status', 'env']) {
      const { code, output } = await lab(command);
      expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('lab -- up') as string });
    }
  });

  it('starts a lab once, tells where all of it is, and ends it', async () => {
    const first = await lab('up');
    expect(first.code).toBe(0);
    const variables = variablesIn(first.output);
    expect(Object.keys(variables)).toEqual(
      expect.arrayContaining([
        'MESH_PROXY',
        'WEB_2_UDP_PORT',
        'GATEWAY_HTTP',
        'GATEWAY_RESOURCES',
        'ENVOY_ADMIN',
      ]),
    );
    expect(variablesIn((await lab('up')).output)).toEqual(variables);
    expect(variablesIn((await lab('env')).output)).toEqual(variables);
    const status = await lab('status');
    expect(status).toMatchObject({ code: 0 });
    expect(status.output.match(/ runs \(\d+\)/g)).toHaveLength(8);
    expect(await lab('down')).toEqual({ code: 0, output: '8 processes ended\n' });
    expect(await lab('down')).toEqual({ code: 0, output: '0 processes ended\n' });
  }, 60_000);

  it.each([
    { args: ['sideways'], says: 'COMMAND' },
    { args: ['up', '--only', 'gateway'], says: 'there is no part "gateway"' },
    { args: ['up', '--extension', 'nowhere'], says: 'give HOST:PORT' },
    { args: ['up', '--fast'], says: '--fast' },
  ])('refuses $args', async ({ args, says }) => {
    const { code, output } = await lab(...args);
    expect({ code, output }).toEqual({ code: 2, output: expect.stringContaining(says) as string });
  });
});
