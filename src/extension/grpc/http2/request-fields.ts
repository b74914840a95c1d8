import type { Field } from './hpack/field.ts';

/** What a request asks for: of its headers those that anybody here looks at. */
export type RequestHead = {
  readonly ':method': string;
  readonly ':path': string;
  readonly 'content-type'?: string;
  readonly 'grpc-timeout'?: string;
};

/** Why headers are not a request. */
export type NoRequest = 'too large' | 'malformed';

/** Fields that belong to a connection of HTTP/1.1, and never to a request of HTTP/2. */
const OF_CONNECTIONS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

const LENGTH = /^\d{1,15}$/;

/** Gathers the fields of one block, and judges what they are together. */
export class RequestFields {
  readonly #most: number;
  readonly #pseudo = new Map<string, string>();
  #size = 0;
  #isMalformed = false;
  #hasRegular = false;
  #contentType: string | undefined;
  #timeout: string | undefined;
  #length: string | undefined;

  /** Together, each with 32 bytes on top, they may have no more bytes than this. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Adds the next field; of those that are too many nothing is kept. */
  add(field: Field): void {
    this.#size += field.size;
    if (this.#size > this.#most) return;
    if (!field.isWellFormed) this.#isMalformed = true;
    else if (field.name.startsWith(':')) this.#addPseudo(field);
    else this.#addRegular(field);
  }

  /** What is asked for, where it is a request. */
  head(): RequestHead | NoRequest {
    if (this.#size > this.#most) return 'too large';
    const pseudo = this.#pseudo;
    const [method, path] = [pseudo.get(':method'), pseudo.get(':path')];
    if (this.#isMalformed || !method || !path || !pseudo.has(':scheme')) return 'malformed';
    return {
      ':method': method,
      ':path': path,
      ...(this.#contentType !== undefined && { 'content-type': this.#contentType }),
      ...(this.#timeout !== undefined && { 'grpc-timeout': this.#timeout }),
    };
  }

  /** Whether they may stand behind the data of a request. */
  get areTrailers(): boolean {
    return this.#size <= this.#most && !this.#isMalformed && this.#pseudo.size === 0;
  }

  /** How many bytes of data the request says that it has. */
  get contentLength(): number | undefined {
    return this.#length === undefined ? undefined : Number(this.#length);
  }

  #addPseudo({ name, value }: Field): void {
    const isKnown = name === ':method' || name === ':path' || name === ':scheme' || name === ':authority';
    if (!isKnown || this.#hasRegular || this.#pseudo.has(name)) this.#isMalformed = true;
    else this.#pseudo.set(name, value);
  }

  #addRegular({ name, value }: Field): void {
    this.#hasRegular = true;
    if (name === 'content-type') {
      this.#contentType ??= value;
    } else if (name === 'grpc-timeout') {
      this.#timeout = this.#timeout === undefined ? value : `${this.#timeout}, ${value}`;
    } else if (name === 'content-length') {
      this.#isMalformed ||= !LENGTH.test(value) || (this.#length ?? value) !== value;
      this.#length = value;
    } else if (OF_CONNECTIONS.has(name) || (name === 'te' && value !== 'trailers')) {
      this.#isMalformed = true;
    }
  }
}
