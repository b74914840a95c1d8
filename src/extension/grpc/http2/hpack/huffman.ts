import { SYMBOLS_BY_BITS } from './huffman-code.ts';

const END = 256;
const LONGEST_PADDING = 7;

/** A place in the tree of codes: for each of two bits a further place, or, below zero, the symbol that has been read. */
type Tree = readonly (readonly [number, number])[];

/** Where the reading of a text begins, and goes on after each symbol. */
const ROOT = 0;

const TREE = treeOf(SYMBOLS_BY_BITS);

/** Reads what lies between two places, coded by Huffman; undefined where it is not. The result is read as Latin-1. */
export function decodeHuffman(bytes: Buffer, from: number, to: number): string | undefined {
  const text = Buffer.allocUnsafe(Math.ceil(((to - from) * 8) / 5));
  let length = 0;
  let place = ROOT;
  let bitsOfSymbol = 0;
  let isAllOnes = true;
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0;
    for (let shift = 7; shift >= 0; shift--) {
      const bit = ((byte >> shift) & 1) as 0 | 1;
      place = TREE[place]?.[bit] ?? ROOT;
      bitsOfSymbol++;
      isAllOnes &&= bit === 1;
      if (place >= 0) continue;
      const symbol = -place - 1;
      if (symbol === END) return undefined;
      text[length++] = symbol;
      place = ROOT;
      bitsOfSymbol = 0;
      isAllOnes = true;
    }
  }
  if (bitsOfSymbol > LONGEST_PADDING || !isAllOnes) return undefined;
  return text.toString('latin1', 0, length);
}

function treeOf(groups: typeof SYMBOLS_BY_BITS): Tree {
  const tree: [number, number][] = [[ROOT, ROOT]];
  let code = 0;
  let before = 0;
  for (const [bits, symbols] of groups) {
    code <<= bits - before;
    before = bits;
    for (const symbol of symbols) plant(tree, code++, bits, symbol);
  }
  return tree;
}

function plant(tree: [number, number][], code: number, bits: number, symbol: number): void {
  let place = tree[ROOT];
  for (let shift = bits - 1; place; shift--) {
    const bit = ((code >> shift) & 1) as 0 | 1;
    if (shift === 0) {
      place[bit] = -symbol - 1;
      return;
    }
    if (place[bit] === ROOT) place[bit] = tree.push([ROOT, ROOT]) - 1;
    place = tree[place[bit]];
  }
}
