import { differsBetweenEngines } from '../load/pattern.ts';
import { anyMayFail } from './operators.ts';
import { Unsupported } from './scope.ts';
import type { Compiled, Constants } from './scope.ts';
import { BOOL, CIDR, describe, DURATION, INT } from './type.ts';
import type { CelType } from './type.ts';

/** How a function is written in JavaScript. */
type Form = {
  readonly write: (args: readonly string[], constants: Constants) => string;
  readonly type: CelType;
  /** As `a.name(b)`, as `name(a, b)`, or both. */
  readonly as: 'method' | 'function' | 'either';
  /** It fails for some values. */
  readonly mayFail?: true;
};

const called =
  (name: string) =>
  (args: readonly string[], constants: Constants): string =>
    `${constants.use(name)}(${args.join(', ')})`;

/** Every function that rules may use, of CEL itself and of the Kubernetes libraries, by the types it takes. */
const FUNCTIONS: Readonly<Record<string, Form>> = {
  'size(string)': { write: called('codePoints'), type: INT, as: 'either' },
  'size(list)': { write: ([list]) => `${list}.length`, type: INT, as: 'either' },
  'size(map)': { write: ([map]) => `Object.keys(${map}).length`, type: INT, as: 'either' },
  'startsWith(string, string)': { write: ([a, b]) => `${a}.startsWith(${b})`, type: BOOL, as: 'method' },
  'endsWith(string, string)': { write: ([a, b]) => `${a}.endsWith(${b})`, type: BOOL, as: 'method' },
  'contains(string, string)': { write: ([a, b]) => `${a}.includes(${b})`, type: BOOL, as: 'method' },
  'matches(string, string)': { write: writeMatches, type: BOOL, as: 'either' },
  'duration(string)': { write: writeDuration, type: DURATION, as: 'function', mayFail: true },
  'cidr(string)': { write: writeCidr, type: CIDR, as: 'function' },
  'isIP(string)': { write: called('isIP'), type: BOOL, as: 'function' },
  'isCIDR(string)': { write: called('isCIDR'), type: BOOL, as: 'function' },
  'containsIP(cidr, string)': { write: called('containsIP'), type: BOOL, as: 'method', mayFail: true },
  'sets.intersects(list, list)': { write: called('intersects'), type: BOOL, as: 'function' },
};

/** `name(a, b)`, or `a.name(b)` with the receiver as the first argument. */
export function compileFunction(
  name: string,
  args: readonly Compiled[],
  as: 'method' | 'function',
  constants: Constants,
): Compiled {
  const signature = `${name}(${args.map(arg => arg.type.is).join(', ')})`;
  const form = Object.hasOwn(FUNCTIONS, signature) ? FUNCTIONS[signature] : undefined;
  if (!form) {
    const given = args.map(arg => describe(arg.type)).join(', ');
    throw new Unsupported(
      `uses ${name}(${given}), which has no JavaScript form in codegen/cel/functions.ts yet`,
    );
  }
  if (form.as !== 'either' && form.as !== as)
    throw new Unsupported(`uses ${name} as a ${as}, but it is a ${form.as}`);
  const js = form.write(
    args.map(arg => arg.js),
    constants,
  );
  const isConstant = /^[a-z]+\d+$/.test(js);
  return { js, type: form.type, mayFail: anyMayFail(...args) || (form.mayFail === true && !isConstant) };
}

function writeMatches([text, argument]: readonly string[], constants: Constants): string {
  const pattern = literalOf(argument, 'matches a pattern');
  const why = differsBetweenEngines(pattern);
  if (why) throw new Unsupported(`matches a pattern in which ${why}`);
  return `${constants.named('pattern', `new RegExp(${JSON.stringify(pattern)}, "u")`)}.test(${text})`;
}

const DURATION_LITERAL = /^-?(\d{1,6}(\.\d{1,9})?(ns|us|ms|s|m|h)){1,5}$/;

function writeDuration([argument]: readonly string[], constants: Constants): string {
  const js = `${constants.use('duration')}(${argument})`;
  if (!argument?.startsWith('"')) return js;
  const text = literalOf(argument, 'names a duration');
  if (!DURATION_LITERAL.test(text))
    throw new Unsupported(`names ${argument}, which is not a duration such as 1m30s`);
  return constants.named('duration', js);
}

/** An address of four octets, or of hexadecimal groups that a URL accepts too. */
function isAddress(text: string): boolean {
  if (!text.includes(':')) return /^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(?!$)|$)){4}$/.test(text);
  return /^[0-9a-f:]+$/.test(text) && URL.canParse(`http://[${text}]`);
}

function writeCidr([argument]: readonly string[], constants: Constants): string {
  const text = literalOf(argument, 'names a range of addresses');
  const [, address = '', bits = ''] = /^(.+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const mostBits = address.includes(':') ? 128 : 32;
  if (!isAddress(address) || Number(bits) > mostBits) {
    throw new Unsupported(`names ${argument}, which is not a range of addresses such as 100.64.0.0/10`);
  }
  return constants.named('cidr', `${constants.use('cidr')}(${argument})`);
}

/** The text of an argument that must be written out in the rule. */
function literalOf(argument: string | undefined, what: string): string {
  if (!argument?.startsWith('"')) throw new Unsupported(`${what} that is not a literal`);
  return JSON.parse(argument) as string;
}
