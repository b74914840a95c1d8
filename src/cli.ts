#!/usr/bin/env node
/** `mesh-gateway <command>`: reads the arguments and runs the command. */
import { LINT_HELP, runLint, UsageError } from './lint.ts';

/** Set by the bundler to the version in package.json. */
declare const VERSION_OF_PACKAGE: string | undefined;

const HELP = `mesh-gateway sends Gateway API traffic to services on a private mesh network.

Usage: mesh-gateway <command>

  lint PATH...     check objects in files as the API server would
  help [COMMAND]   say more about a command
  version          print the version
`;

async function main([command, ...args]: readonly string[]): Promise<number> {
  switch (command) {
    case 'lint':
      if (!args.includes('--help')) return runLint(args);
      console.log(LINT_HELP);
      return 0;
    case 'version':
    case '--version':
      console.log(typeof VERSION_OF_PACKAGE === 'undefined' ? 'not built' : VERSION_OF_PACKAGE);
      return 0;
    case 'help':
    case '--help':
      console.log(args[0] === 'lint' ? LINT_HELP : HELP);
      return 0;
    case undefined:
      console.error(HELP);
      return 2;
    default:
      throw new UsageError(`there is no command "${command}"; mesh-gateway help lists them`);
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`mesh-gateway: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}
