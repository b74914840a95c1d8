import type { Clock } from '../api/clock.ts';
import { refOf } from '../api/key.ts';
import type { Log } from '../telemetry/log.ts';
import { GeneratedFolder } from './folder.ts';
import { kindOfPart } from './generated-part.ts';
import { Handovers } from './handovers.ts';
import { nextText } from './next-text.ts';
import type { NextText } from './next-text.ts';
import { KINDS_OF_STORE, wantedOf } from './wanted.ts';
import type { Declarations, LeftOut } from './wanted.ts';

/** What the folder is made of. */
export type GatewayFilesDeps = Declarations & {
  /** The folder that Envoy Gateway reads, flat and ours alone. */
  readonly folder: string;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
};

/** Between attempts to write what could not be written. */
const RETRY_MS = 1000;

/**
 * Keeps a folder as Envoy Gateway needs it: one part for each object that it knows, written after our own store knows of
 * the change, and at once with all that changed with it. While one object there is refused it loads nothing, so that only
 * kinds are there that it knows, in the version that it keeps.
 */
export class GatewayFiles {
  readonly #deps: GatewayFilesDeps;
  readonly #folder: GeneratedFolder;
  readonly #handovers: Handovers;
  readonly #texts = new WeakMap<object, string>();
  /** The text of each part as it was last wanted; what is shown may be on its way there. */
  readonly #wanted = new Map<string, string>();
  /** What an earlier run has left, and of which it is not known yet whether it is still declared. */
  readonly #leftovers = new Set<string>();
  #leftOut = new Map<string, string>();
  #isOpen = false;
  #isDirty = false;
  #running: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: GatewayFilesDeps) {
    this.#deps = deps;
    this.#folder = new GeneratedFolder(deps.folder);
    const goOnWith = (part: string) => {
      this.#wanted.delete(part);
      this.#schedule();
    };
    this.#handovers = new Handovers(deps.clock, () => this.#folder.parts().length, goOnWith);
  }

  /** Begins when everything has been read, so that Envoy Gateway never sees a part of it. */
  start(): void {
    const { read } = this.#deps;
    this.#unsubscribe = read.subscribe(({ key }) => {
      if (KINDS_OF_STORE.includes(refOf(key).kind)) this.#schedule();
    });
    void read.whenSynced().then(() => this.#schedule());
  }

  /** Objects of others have changed, and the store knows. */
  onWritten(): void {
    this.#schedule();
  }

  /** Waits until the folder is as it should be, or could not be written. */
  async whenIdle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe?.();
    this.#cancelRetry?.();
    this.#handovers.close();
    await this.whenIdle();
  }

  #schedule(): void {
    if (!this.#deps.read.isSynced()) return;
    this.#isDirty = true;
    this.#run();
  }

  #run(): void {
    if (this.#isClosed || this.#cancelRetry) return;
    this.#running ??= this.#work();
  }

  async #work(): Promise<void> {
    // What happens in one go is written in one go.
    await Promise.resolve();
    try {
      while (this.#isDirty && !this.#isClosed) await this.#write();
    } catch (error) {
      this.#retry(error);
    }
    // At once with the last check of what is to be written, so that nothing is left waiting.
    this.#running = undefined;
  }

  async #write(): Promise<void> {
    if (!this.#isOpen) await this.#open();
    this.#isDirty = false;
    const { parts, leftOut } = wantedOf(
      this.#deps,
      part => this.#folder.has(part),
      (object, make) => this.#textOnce(object, make),
    );
    for (const [part, text] of parts) this.#put(part, text);
    // What may be in a file that cannot be read now stays; a MeshBinding is in none.
    const isUnsure = this.#deps.written.hasUnread();
    const stays = (part: string) =>
      isUnsure && this.#leftovers.has(part) && kindOfPart(part) !== 'MeshBinding';
    for (const part of this.#folder.parts()) if (!parts.has(part) && !stays(part)) this.#remove(part);
    this.#report(leftOut);
    await this.#folder.show();
  }

  /** What was on its way to another name begins anew as well: perhaps not even the first step has been written. */
  async #open(): Promise<void> {
    this.#handovers.close();
    this.#wanted.clear();
    const { folder, log } = this.#deps;
    const strangers = await this.#folder.open();
    for (const part of this.#folder.parts()) this.#leftovers.add(part);
    this.#isOpen = true;
    if (strangers.length > 0)
      log.warn('Envoy Gateway also reads files that are not from here', { folder, files: strangers });
  }

  #textOnce(object: object, make: () => string): string {
    const text = this.#texts.get(object) ?? make();
    this.#texts.set(object, text);
    return text;
  }

  #remove(part: string): void {
    this.#leftovers.delete(part);
    this.#wanted.delete(part);
    this.#handovers.forget(part);
    this.#folder.remove(part);
  }

  #put(part: string, text: string): void {
    this.#leftovers.delete(part);
    if (this.#wanted.get(part) === text) return;
    this.#wanted.set(part, text);
    let next: NextText = { text };
    this.#folder.put(part, text, now => {
      next = nextText(part, now, text, this.#handovers.phaseOf(part));
      return next.text;
    });
    if (next.enter) this.#handovers.enter(part, next.enter);
    if (!next.kept) return;
    const why = `start Envoy Gateway anew, or give the object another name: it keeps ${next.kept.join(', ')}`;
    this.#deps.log.warn('Envoy Gateway does not notice that fields are removed', { object: part, why });
  }

  /** Whatever could not be written may be so because the folder is not what it was. */
  #retry(error: unknown): void {
    const { folder, clock, log } = this.#deps;
    log.error('the folder for Envoy Gateway cannot be written', { folder, error });
    [this.#isOpen, this.#isDirty] = [false, true];
    if (this.#isClosed) return;
    this.#cancelRetry = clock.after(RETRY_MS, () => {
      this.#cancelRetry = undefined;
      this.#run();
    });
  }

  /** Each once, and again when the reason is another. */
  #report(leftOut: readonly LeftOut[]): void {
    const reported = this.#leftOut;
    this.#leftOut = new Map(leftOut.map(({ object, why }) => [object, why]));
    for (const one of leftOut)
      if (reported.get(one.object) !== one.why)
        this.#deps.log.warn('Envoy Gateway does not get an object', one);
  }
}
