import { BlockList, isIP } from 'node:net';
import { Environment } from '@marcbachmann/cel-js';
import { compileRule } from '../../../codegen/cel/compile.ts';
import { Constants } from '../../../codegen/cel/scope.ts';
import { celTypeOf } from '../../../codegen/cel/type.ts';
import type { Node } from '../../../codegen/kind.ts';
import { fileOf, importLine } from '../../../codegen/text.ts';
import { holds } from '../../../src/api/validation/validator-functions.ts';
import { evaluateModule } from '../schema/evaluate.ts';

/** Whether a rule holds for a value; false if it cannot be evaluated. */
export type Judge = (self: unknown) => boolean;

/** A rule about a node, compiled by our compiler. */
export function compiledRule(rule: string, node: Node): Judge {
  const constants = new Constants();
  const js = compileRule(rule, celTypeOf(node), constants);
  const imports = importLine(constants.imports(), '../validation/validator-functions.ts');
  const module = fileOf(imports, constants.declarations(), [`export const rule = self => ${js};`]);
  const compiled = evaluateModule(module)['rule'] as Judge;
  return self => holds(compiled, self);
}

/** The same rule in the evaluator of another project. */
export function interpretedRule(rule: string): Judge {
  const evaluate = KUBERNETES.parse(rule);
  return self => {
    try {
      return evaluate({ self: withBigIntegers(self) }) === true;
    } catch {
      return false;
    }
  };
}

/** No value of our schema is a floating point number: every number is an int, which is a BigInt here. */
function withBigIntegers(value: unknown): unknown {
  if (typeof value === 'number') return BigInt(value);
  if (Array.isArray(value)) return value.map(withBigIntegers);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withBigIntegers(item)]));
}

/** A range of addresses, by Node's BlockList. */
class Cidr {
  readonly #list = new BlockList();
  readonly #family: 'ipv4' | 'ipv6';

  constructor(text: string) {
    const [base = '', bits = ''] = text.split('/');
    this.#family = familyOf(base);
    this.#list.addSubnet(base, Number(bits), this.#family);
  }

  contains(address: string): boolean {
    const family = familyOf(address);
    return family === this.#family && this.#list.check(address, family);
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  if (!isAddress(address)) throw new TypeError(`${address} is not an address`);
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/** As in Node, without what the API server refuses: zones, and IPv4-mapped IPv6 addresses. */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%') && !/^::ffff:/i.test(text);
}

/** The length as the API server reads it: without zeros in front, and within the address. */
function isRange(text: string): boolean {
  const [base = '', bits = '', ...others] = text.split('/');
  if (others.length > 0 || !isAddress(base) || !/^\d+$/.test(bits)) return false;
  return String(Number(bits)) === bits && Number(bits) <= (isIP(base) === 4 ? 32 : 128);
}

/** Stands for the namespace `sets`, as the library has no functions with dots in their names. */
class Sets {
  intersects(left: readonly unknown[], right: readonly unknown[]): boolean {
    return left.some(item => right.includes(item));
  }
}

/** CEL with the libraries of Kubernetes, as far as our rules may use them. */
const KUBERNETES = new Environment()
  .registerVariable('self', 'dyn')
  .registerType('Cidr', Cidr)
  .registerType('Sets', Sets)
  .registerConstant('sets', 'Sets', new Sets())
  .registerFunction('isIP(string): bool', isAddress)
  .registerFunction('isCIDR(string): bool', isRange)
  .registerFunction('cidr(string): Cidr', (text: string) => new Cidr(text))
  .registerFunction('Cidr.containsIP(string): bool', (range: Cidr, text: string) => range.contains(text))
  .registerFunction('Sets.intersects(list, list): bool', (sets: Sets, left: unknown[], right: unknown[]) =>
    sets.intersects(left, right),
  );
