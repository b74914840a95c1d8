import type { SocketAddress } from '../api/socket-address.ts';
import { RelayPort } from './relay-port.ts';
import type { RelayPortDeps, RelayPortOptions } from './relay-port.ts';

type PortSetOptions = RelayPortOptions & { readonly closeDelayMs: number };

/** The ports of a relay. */
export class PortSet {
  readonly #options: PortSetOptions;
  readonly #deps: RelayPortDeps;
  readonly #ports = new Map<number, RelayPort>();
  /** The ports that are about to be closed, with the functions that cancel it. */
  readonly #closing = new Map<number, () => void>();

  constructor(options: PortSetOptions, deps: RelayPortDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  async update(targets: ReadonlyMap<number, SocketAddress>): Promise<void> {
    for (const port of this.#ports.keys()) if (!targets.has(port)) this.#closeLater(port);
    const added = [...targets].filter(([port]) => !this.#ports.has(port));
    for (const [port, target] of targets) this.#keep(port, target);
    const opened = added.map(([port, target]) => this.#open(port, target));
    this.#deps.quota.setPorts(this.#ports.size);
    await Promise.all([this.listenAgain(), ...opened.map(port => port.listen())]);
  }

  /** Tries to bind the ports that are not bound. */
  async listenAgain(): Promise<void> {
    const failed = [...this.#ports.values()].filter(({ failure }) => failure !== undefined);
    await Promise.all(failed.map(port => port.listen()));
  }

  /** Why ports could not be bound, by port. */
  failures(): ReadonlyMap<number, string> {
    const ports = [...this.#ports];
    return new Map(ports.flatMap(([port, { failure }]) => (failure === undefined ? [] : [[port, failure]])));
  }

  sweep(now: number): void {
    for (const port of this.#ports.values()) port.sweep(now);
  }

  async close(): Promise<void> {
    for (const cancel of this.#closing.values()) cancel();
    this.#closing.clear();
    const ports = [...this.#ports.values()];
    this.#ports.clear();
    await Promise.all(ports.map(port => port.close()));
  }

  #open(number: number, target: SocketAddress): RelayPort {
    const port = new RelayPort(number, target, this.#options, this.#deps);
    this.#ports.set(number, port);
    return port;
  }

  #keep(port: number, target: SocketAddress): void {
    this.#closing.get(port)?.();
    this.#closing.delete(port);
    this.#ports.get(port)?.setTarget(target);
  }

  #closeLater(port: number): void {
    if (this.#closing.has(port)) return;
    const close = () => {
      this.#closing.delete(port);
      void this.#ports.get(port)?.close();
      this.#ports.delete(port);
      this.#deps.quota.setPorts(this.#ports.size);
    };
    this.#closing.set(port, this.#deps.clock.after(this.#options.closeDelayMs, close));
  }
}
