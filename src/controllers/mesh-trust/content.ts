import { lineOf } from '../../api/trust.ts';
import type { Trust, TrustedCa } from '../../api/trust.ts';

/** References with what is published for them, and how many bytes that takes: equal certificates count once. */
export class TrustContent {
  readonly #trust = new Map<string, TrustedCa>();
  /** How many references have these certificates. */
  readonly #users = new Map<string, number>();
  #bytes = 0;

  get trust(): Trust {
    return this.#trust;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Sets what a reference has, unless all exceed a size then; returns whether it has it. */
  set(text: string, ca: TrustedCa, maxBytes = Infinity): boolean {
    const before = this.#trust.get(text);
    this.#count(text, before, -1);
    this.#count(text, ca, 1);
    if (this.#bytes > maxBytes) {
      this.#count(text, ca, -1);
      this.#count(text, before, 1);
      return false;
    }
    this.#trust.set(text, ca);
    return true;
  }

  #count(text: string, ca: TrustedCa | undefined, by: 1 | -1): void {
    if (!ca) return;
    this.#bytes += by * lineSize(text, ca);
    if (ca.is !== 'found') return;
    const users = (this.#users.get(ca.pem) ?? 0) + by;
    this.#users.set(ca.pem, users);
    if (users === Math.max(by, 0)) this.#bytes += by * ca.pem.length;
  }
}

/** More than its line, and the key of its certificates, take. */
function lineSize(text: string, ca: TrustedCa): number {
  return text.length + (ca.is === 'found' ? 0 : Buffer.byteLength(lineOf(ca))) + 160;
}
