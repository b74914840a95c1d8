import { expect, it } from 'vitest';
import { extensionServerHelp } from '../../src/extension-server.ts';
import { operatorHelp } from '../../src/operator.ts';
import { relayHelp } from '../../src/relay.ts';
import { standaloneHelp } from '../../src/standalone.ts';
import { CHECK_HELP } from '../../src/tools/check/command.ts';
import { COMPLETION_HELP } from '../../src/tools/completion.ts';
import { DOCTOR_HELP } from '../../src/tools/doctor/command.ts';
import { STATUS_HELP } from '../../src/tools/status/command.ts';
import { TRACE_HELP } from '../../src/tools/trace/command.ts';
import { SYNTH_HELP } from '../../synth/command.ts';

it.each([
  ...[CHECK_HELP, TRACE_HELP, DOCTOR_HELP, STATUS_HELP, COMPLETION_HELP, SYNTH_HELP],
  ...[operatorHelp(), extensionServerHelp(), relayHelp(), standaloneHelp({ HOME: '/me' })],
])('the help fits 80 columns: %s', help => {
  expect(help.split('\n').filter(line => line.length > 80)).toEqual([]);
  expect(help).toMatch(/^mesh-gateway [a-z-]+/);
});
