import { differsBetweenEngines } from '../pattern.ts';
import { Unsupported } from './scope.ts';
import type { Compiled, Constants } from './scope.ts';
import { BOOL, CIDR, describe, DURATION, INT } from './type.ts';

/** How a function is written in JavaScript. */
type Form = (args: readonly string[], constants: Constants) => Compiled;

/** Every function that rules may use, of CEL itself and of the Kubernetes libraries, by the types it takes. */
const FUNCTIONS: Readonly<Record<string, Form>> = {
  'size(string)': (args, constants) => ({ js: `${constants.use('codePoints')}(${args[0]})`, type: INT }),
  'size(list)': args => ({ js: `${args[0]}.length`, type: INT }),
  'size(map)': args => ({ js: `Object.keys(${args[0]}).length`, type: INT }),
  'startsWith(string, string)': args => ({ js: `${args[0]}.startsWith(${args[1]})`, type: BOOL }),
  'endsWith(string, string)': args => ({ js: `${args[0]}.endsWith(${args[1]})`, type: BOOL }),
  'contains(string, string)': args => ({ js: `${args[0]}.includes(${args[1]})`, type: BOOL }),
  'matches(string, string)': (args, constants) => ({
    js: `${constants.named('pattern', patternOf(args[1]))}.test(${args[0]})`,
    type: BOOL,
  }),
  'duration(string)': (args, constants) => ({ js: once('duration', args[0], constants), type: DURATION }),
  'cidr(string)': (args, constants) => ({ js: once('cidr', args[0], constants), type: CIDR }),
  'isIP(string)': (args, constants) => ({ js: `${constants.use('isIP')}(${args[0]})`, type: BOOL }),
  'containsIP(cidr, string)': (args, constants) => ({
    js: `${constants.use('containsIP')}(${args[0]}, ${args[1]})`,
    type: BOOL,
  }),
  'sets.intersects(list, list)': (args, constants) => ({
    js: `${constants.use('intersects')}(${args.join(', ')})`,
    type: BOOL,
  }),
};

/** `name(a, b)`, and `a.name(b)`: the receiver of a method is its first argument. */
export function compileFunction(name: string, args: readonly Compiled[], constants: Constants): Compiled {
  const signature = `${name}(${args.map(arg => arg.type.is).join(', ')})`;
  const form = Object.hasOwn(FUNCTIONS, signature) ? FUNCTIONS[signature] : undefined;
  if (!form) {
    const given = args.map(arg => describe(arg.type)).join(', ');
    throw new Unsupported(
      `uses ${name}(${given}), which has no JavaScript form in codegen/cel/functions.ts yet`,
    );
  }
  return form(
    args.map(arg => arg.js),
    constants,
  );
}

/** A call that is made once when the code is loaded, where the argument is a literal. */
function once(name: string, argument: string | undefined, constants: Constants): string {
  const js = `${constants.use(name)}(${argument})`;
  return argument?.startsWith('"') ? constants.named(name, js) : js;
}

function patternOf(argument: string | undefined): string {
  if (!argument?.startsWith('"')) throw new Unsupported('matches a pattern that is not a literal');
  const pattern = JSON.parse(argument) as string;
  const why = differsBetweenEngines(pattern);
  if (why) throw new Unsupported(`matches a pattern in which ${why}`);
  return `new RegExp(${JSON.stringify(pattern)}, "u")`;
}
