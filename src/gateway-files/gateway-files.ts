import { refOf } from '../api/key.ts';
import type { Ref } from '../api/key.ts';
import type { Change } from '../resources/resources.ts';
import type { WrittenKey } from '../resources/written.ts';
import type { Clock } from '../api/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { GeneratedFolder } from './folder.ts';
import { kindOfPart } from './generated-part.ts';
import { Handovers } from './handovers.ts';
import { nextText } from './next-text.ts';
import type { NextText } from './next-text.ts';
import { allSubjects, idOf, neededBy, wantedOf } from './wanted.ts';
import type { Declarations, Subject, Wanted } from './wanted.ts';

/** What the folder is made of. */
export type GatewayFilesParts = Declarations & {
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
  readonly #parts: GatewayFilesParts;
  readonly #folder: GeneratedFolder;
  #dirty = new Map<string, Subject>();
  #isAll = false;
  /** What an earlier run has left, and of which it is not known yet whether it is still declared. */
  readonly #leftovers = new Set<string>();
  readonly #leftOut = new Map<string, string>();
  readonly #handovers: Handovers;
  readonly #handedOver = new Map<string, Subject>();
  #running: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #isClosed = false;

  constructor(parts: GatewayFilesParts) {
    this.#parts = parts;
    this.#folder = new GeneratedFolder(parts.folder);
    this.#handovers = new Handovers(
      parts.clock,
      () => this.#folder.size,
      part => this.#goOnWith(part),
    );
  }

  /** Begins when everything has been read, so that Envoy Gateway never sees a part of it. */
  start(): void {
    const { read } = this.#parts;
    this.#unsubscribe = read.subscribe(change => this.#hear(change));
    void read.whenSynced().then(() => {
      this.#isAll = true;
      this.#run();
    });
  }

  /** Objects of others have changed, and the store knows. */
  onWritten(keys: readonly WrittenKey[]): void {
    for (const key of keys) this.#mark({ by: 'file', key });
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

  #hear({ key }: Change): void {
    const ref = refOf(key);
    if (isOfStore(ref)) this.#mark({ by: 'store', ref });
    for (const subject of neededBy(ref, this.#parts.read)) this.#mark(subject);
  }

  #mark(subject: Subject): void {
    this.#dirty.set(idOf(subject), subject);
    if (this.#parts.read.isSynced()) this.#run();
  }

  #run(): void {
    if (this.#isClosed || this.#cancelRetry) return;
    this.#running ??= this.#work();
  }

  async #work(): Promise<void> {
    // What happens in one go is written in one go.
    await Promise.resolve();
    try {
      while ((this.#isAll || this.#dirty.size > 0) && !this.#isClosed) await this.#writeOnce();
    } catch (error) {
      this.#retry(error);
    }
    // At once with the last look at what is to be written, so that nothing is left waiting.
    this.#running = undefined;
  }

  async #writeOnce(): Promise<void> {
    if (this.#isAll) await this.#openAnew();
    const subjects = this.#isAll ? allSubjects(this.#parts) : [...this.#dirty.values()];
    this.#isAll = false;
    this.#dirty = new Map();
    for (const subject of subjects) {
      const wanted = wantedOf(subject, this.#parts, part => this.#folder.has(part));
      this.#report(idOf(subject), wanted);
      if (wanted.is === 'part') this.#put(wanted, subject);
      if (wanted.is === 'no-part') this.#remove(wanted.part);
    }
    this.#removeLeftovers();
    await this.#folder.show();
  }

  /** What was on its way to another name begins anew as well: perhaps not even the first step has been written. */
  async #openAnew(): Promise<void> {
    this.#handovers.close();
    this.#handedOver.clear();
    const { parts, strangers } = await this.#folder.open();
    for (const part of parts) this.#leftovers.add(part);
    const { folder, log } = this.#parts;
    if (strangers.length > 0)
      log.warn('Envoy Gateway also reads files that are not from here', { folder, files: strangers });
  }

  /** What may be in a file that cannot be read now stays; a MeshBinding is in none. */
  #removeLeftovers(): void {
    const isUnsure = this.#parts.written.hasUnread();
    for (const part of this.#leftovers)
      if (!isUnsure || kindOfPart(part) === 'MeshBinding') this.#remove(part);
  }

  #remove(part: string): void {
    this.#leftovers.delete(part);
    this.#handovers.forget(part);
    this.#handedOver.delete(part);
    this.#folder.remove(part);
  }

  #put({ part, text }: Wanted & { readonly is: 'part' }, subject: Subject): void {
    this.#leftovers.delete(part);
    let next: NextText = { text };
    this.#folder.put(part, text, now => {
      next = nextText(part, now, text, this.#handovers.phaseOf(part));
      return next.text;
    });
    if (next.enter) {
      this.#handovers.enter(part, next.enter);
      this.#handedOver.set(part, subject);
    }
    if (!next.kept) return;
    const why = `start Envoy Gateway anew, or give the object another name: it keeps ${next.kept.join(', ')}`;
    this.#parts.log.warn('Envoy Gateway does not notice that fields are removed', { object: part, why });
  }

  #goOnWith(part: string): void {
    const subject = this.#handedOver.get(part);
    if (subject) this.#mark(subject);
  }

  /** Whatever could not be written may be so because the folder is not what it was. */
  #retry(error: unknown): void {
    const { folder, clock, log } = this.#parts;
    log.error('the folder for Envoy Gateway cannot be written', { folder, error });
    this.#isAll = true;
    if (this.#isClosed) return;
    this.#cancelRetry = clock.after(RETRY_MS, () => {
      this.#cancelRetry = undefined;
      this.#run();
    });
  }

  /** Told once, and again when the reason is another. */
  #report(id: string, wanted: Wanted): void {
    if (wanted.is !== 'left-out') {
      this.#leftOut.delete(id);
      return;
    }
    const { object, source, why } = wanted;
    if (this.#leftOut.get(id) === why) return;
    this.#leftOut.set(id, why);
    this.#parts.log.warn('Envoy Gateway does not get an object', { object, file: source, why });
  }
}

const OF_STORE: readonly string[] = ['MeshEndpoints', 'MeshBinding'];

function isOfStore(ref: Ref): ref is Ref<'MeshEndpoints' | 'MeshBinding'> {
  return OF_STORE.includes(ref.kind);
}
