import { expect, it } from 'vitest';
import { typescript } from '../../support/lab/command-line.ts';
import { outputInOwnNetwork } from '../../support/lab/traffic/own-network.ts';

it('traffic reaches the service of an externalTarget without a proxy, and follows its name in DNS', async () => {
  const program = typescript('test/support/lab/traffic/external-targets-program.ts');
  expect(JSON.parse(await outputInOwnNetwork(program))).toEqual({ answers: ['9.9.9.1', '9.9.9.2'] });
});
