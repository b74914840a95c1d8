#!/usr/bin/env node
/** `mesh-gateway <command>`: reads the arguments and runs the command. */

/** Set by the bundler to the version in package.json. */
declare const VERSION_OF_PACKAGE: string | undefined;

/** A command and its help. */
type Command = {
  /** What follows its name, such as PATH... */
  readonly usage?: string;
  readonly summary: string;
  readonly run: (args: readonly string[]) => Promise<number>;
  readonly help: () => Promise<string>;
};

const environment = process.env;

/** Commands are loaded when they run: check starts fast, and the relay has little in memory. */
const COMMANDS: Readonly<Record<string, Command>> = {
  check: {
    usage: '[PATH...]',
    summary: 'find what is wrong with objects and the routes between them',
    run: async args => (await import('./tools/check/command.ts')).runCheck(args, environment),
    help: async () => (await import('./tools/check/command.ts')).CHECK_HELP,
  },
  trace: {
    usage: 'URL|--all',
    summary: 'follow a request, or all routes, to the devices',
    run: async args => (await import('./tools/trace/command.ts')).runTrace(args, environment),
    help: async () => (await import('./tools/trace/command.ts')).TRACE_HELP,
  },
  doctor: {
    summary: 'find what is wrong with an installation, and the fix',
    run: async args => {
      const { operatorAccess } = await import('./controllers/registry.ts');
      return (await import('./tools/doctor/command.ts')).runDoctor(args, { environment, operatorAccess });
    },
    help: async () => (await import('./tools/doctor/command.ts')).DOCTOR_HELP,
  },
  status: {
    summary: 'print what Envoys have made of the objects',
    run: async args => (await import('./tools/status/command.ts')).runStatus(args, environment),
    help: async () => (await import('./tools/status/command.ts')).STATUS_HELP,
  },
  standalone: {
    summary: 'run everything in one process, from a folder of files',
    run: async args => (await import('./standalone.ts')).runStandalone({ args, environment }, version()),
    help: async () => (await import('./standalone.ts')).standaloneHelp(environment),
  },
  operator: {
    summary: "reconcile mesh-gateway's objects in a cluster",
    run: async args => (await import('./operator.ts')).runOperator({ args, environment }, version()),
    help: async () => (await import('./operator.ts')).operatorHelp(),
  },
  'extension-server': {
    summary: "serve Envoy Gateway's hooks and Envoy's endpoints",
    run: async args =>
      (await import('./extension-server.ts')).runExtensionServer({ args, environment }, version()),
    help: async () => (await import('./extension-server.ts')).extensionServerHelp(),
  },
  relay: {
    summary: 'relay UDP between Envoy and the proxy of a mesh pod',
    run: async args => (await import('./relay.ts')).runRelay({ args, environment }, version()),
    help: async () => (await import('./relay.ts')).relayHelp(),
  },
  synth: {
    summary: 'write the manifests of an installation',
    run: async args => (await import('../synth/command.ts')).runSynth(args, version()),
    help: async () => (await import('../synth/command.ts')).SYNTH_HELP,
  },
  completion: {
    usage: 'SHELL',
    summary: 'print a script by which a shell completes commands',
    run: async args => {
      const { runCompletion } = await import('./tools/completion.ts');
      const commands = Object.entries(COMMANDS).map(async ([name, { summary, help }]) => ({
        name,
        summary,
        help: await help(),
      }));
      return runCompletion(args, await Promise.all(commands));
    },
    help: async () => (await import('./tools/completion.ts')).COMPLETION_HELP,
  },
};

/** Of all commands, as `mesh-gateway help` prints it. */
function overview(): string {
  const rows = Object.entries(COMMANDS).map(([name, { usage, summary }]) => [
    usage === undefined ? name : `${name} ${usage}`,
    summary,
  ]);
  const all = [...rows, ['help [COMMAND]', 'print the help of a command'], ['version', 'print the version']];
  const lines = all.map(([left = '', right = '']) => `  ${left.padEnd(COLUMN)}${right}\n`);
  return `mesh-gateway sends Gateway API traffic to services on a private mesh network.\n\nUsage: mesh-gateway <command>\n\n${lines.join('')}`;
}

const COLUMN = 19;

function version(): string {
  return typeof VERSION_OF_PACKAGE === 'undefined' ? 'not built' : VERSION_OF_PACKAGE;
}

async function main([name, ...args]: readonly string[]): Promise<number> {
  const command = commandOf(name);
  if (command) {
    if (!args.some(isHelpFlag)) return command.run(args);
    console.log(await command.help());
    return 0;
  }
  switch (name) {
    case 'version':
    case '--version':
    case '-v':
      console.log(version());
      return 0;
    case 'help':
    case '--help':
    case '-h':
      console.log(await helpFor(args[0]));
      return 0;
    case undefined:
      console.error(overview());
      return 2;
    default:
      return await refuse(name);
  }
}

function isHelpFlag(arg: string): boolean {
  return arg === '--help' || arg === '-h';
}

async function helpFor(name?: string): Promise<string> {
  if (name === undefined || name === 'help' || name === 'version') return overview();
  const command = commandOf(name);
  return command ? await command.help() : await refuse(name);
}

async function refuse(name: string): Promise<never> {
  const { unknownCommand } = await import('./tools/usage.ts');
  throw new Error(unknownCommand(name, [...Object.keys(COMMANDS), 'help', 'version']));
}

function commandOf(name = ''): Command | undefined {
  return Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
}

// A reader such as head closes the pipe before all is written, which is no fault of the command.
for (const output of [process.stdout, process.stderr])
  output.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return;
    console.error(`mesh-gateway: the output cannot be written: ${code}`);
    process.exit(2);
  });

const [given = ''] = process.argv.slice(2);
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { errorText } = await import('./tools/usage.ts');
  const help = (await commandOf(given)?.help()) ?? '';
  const text = `mesh-gateway: ${errorText(error, { name: given, help })}`;
  const { fitting, lookOf } = await import('./tools/terminal.ts');
  const look = lookOf(given, 'never', environment, process.stderr);
  console.error(
    text
      .split('\n')
      .flatMap(line => fitting(line, 2, look))
      .join('\n'),
  );
  process.exitCode = 2;
}
