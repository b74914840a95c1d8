import type { ResourceKind } from '../../../src/api/key.ts';
import { begin, drip, statusOf, write } from './api-answer.ts';
import type { Exchange, Fault } from './api-answer.ts';
import { asServed } from './api-objects.ts';
import type { ApiEvent } from './api-state.ts';

/** An open watch. */
export class ApiWatch {
  readonly kind: ResourceKind;
  readonly #exchange: Exchange;
  readonly #version: string;
  #isMute = false;

  constructor(exchange: Exchange, kind: ResourceKind, version: string) {
    this.#exchange = exchange;
    this.kind = kind;
    this.#version = version;
    begin(exchange.response, 200);
  }

  send({ type, object }: ApiEvent): void {
    this.#line({ type, object: asServed(object, this.#version) });
  }

  bookmark(revision: number): void {
    const object = { kind: this.kind, apiVersion: 'v1', metadata: { resourceVersion: String(revision) } };
    this.#line({ type: 'BOOKMARK', object });
  }

  fail(code: number): void {
    this.#line({ type: 'ERROR', object: statusOf(code, `too old, or broken: ${code}`) });
    this.end();
  }

  end(): void {
    if (!this.#exchange.response.writableEnded) this.#exchange.response.end();
  }

  /** Breaks the watch with a fault. */
  inject(fault: Fault): void {
    const { response, socket } = this.#exchange;
    const line = JSON.stringify({ type: 'MODIFIED', object: { metadata: { name: 'half' } } });
    switch (fault) {
      case 'reset':
        socket?.resetAndDestroy();
        return;
      case 'early close':
        write(response, line.slice(0, line.length / 2));
        setTimeout(() => socket?.destroy(), 5);
        return;
      case 'silence':
        this.#isMute = true;
        return;
      case '410':
      case '500':
        this.fail(Number(fault));
        return;
      case '401':
      case '403':
      case '404':
      case '429':
      case '503':
        this.end();
        return;
      case 'garbage':
        write(response, '<html>one moment please</html>\n');
        return;
      case 'truncated JSON':
        write(response, line.slice(0, line.length / 2));
        {
          this.end();
          return;
        }
      case 'slow drip':
        this.#isMute = true;
        {
          drip(response, line);
          return;
        }
    }
  }

  #line(event: object): void {
    if (!this.#isMute) write(this.#exchange.response, `${JSON.stringify(event)}\n`);
  }
}
