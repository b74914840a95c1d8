import type { Clock } from '../../api/clock.ts';
import { refOf } from '../../api/key.ts';
import type { Log } from '../../telemetry/log.ts';
import { GeneratedFolder } from './folder.ts';
import { kindOfPart } from './part.ts';
import { RouteRenames } from './route-renames.ts';
import { nextText } from './removed-fields.ts';
import type { NextText } from './removed-fields.ts';
import { STORE_KINDS, desiredParts } from './desired-parts.ts';
import type { Declarations, OmittedObject } from './desired-parts.ts';

/** What the folder is generated from. */
export type GatewayFilesDeps = Declarations & {
  /** The folder that Envoy Gateway reads; nothing else may write to it. */
  readonly folder: string;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
};

/** Between attempts to write the folder. */
const RETRY_MS = 1000;

/**
 * Generates the folder that Envoy Gateway reads: one part for each object of a kind that it supports, in the version that
 * it stores, since it loads nothing while one object is refused. A change is written after the store has it, together
 * with all other changes.
 */
export class GatewayFiles {
  readonly #deps: GatewayFilesDeps;
  readonly #folder: GeneratedFolder;
  readonly #renames: RouteRenames;
  readonly #texts = new WeakMap<object, string>();
  /** The desired text of each part; the written one may still be an intermediate step of a rename. */
  readonly #desired = new Map<string, string>();
  /** Parts of an earlier run, not yet found among the declarations. */
  readonly #leftovers = new Set<string>();
  #omitted = new Map<string, string>();
  #isOpen = false;
  #isDirty = false;
  #running: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: GatewayFilesDeps) {
    this.#deps = deps;
    this.#folder = new GeneratedFolder(deps.folder);
    const requeue = (part: string) => {
      this.#desired.delete(part);
      this.#schedule();
    };
    this.#renames = new RouteRenames(deps.clock, () => this.#folder.parts().length, requeue);
  }

  /** Starts writing once the store is synced, so that Envoy Gateway never reads an incomplete folder. */
  start(): void {
    const { read } = this.#deps;
    this.#unsubscribe = read.subscribe(({ key }) => {
      if (STORE_KINDS.includes(refOf(key).kind)) this.#schedule();
    });
    void read.whenSynced().then(() => this.#schedule());
  }

  /** To be called when objects of kinds outside the store have changed. */
  onWritten(): void {
    this.#schedule();
  }

  /** Resolves when the folder is written, or could not be. */
  async whenIdle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe?.();
    this.#cancelRetry?.();
    this.#renames.close();
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
    // Changes of the same tick are written together.
    await Promise.resolve();
    try {
      while (this.#isDirty && !this.#isClosed) await this.#write();
    } catch (error) {
      this.#retry(error);
    }
    // In the same tick as the last check of #isDirty, so that no change is missed.
    this.#running = undefined;
  }

  async #write(): Promise<void> {
    if (!this.#isOpen) await this.#open();
    this.#isDirty = false;
    const { parts, omitted } = desiredParts(
      this.#deps,
      part => this.#folder.has(part),
      (object, make) => this.#cachedText(object, make),
    );
    for (const [part, text] of parts) this.#put(part, text);
    // A part whose declaration may be in an unreadable file stays; MeshBindings are in no file.
    const isUnsure = this.#deps.written.hasUnread();
    const stays = (part: string) =>
      isUnsure && this.#leftovers.has(part) && kindOfPart(part) !== 'MeshBinding';
    for (const part of this.#folder.parts()) if (!parts.has(part) && !stays(part)) this.#remove(part);
    this.#report(omitted);
    await this.#folder.flush();
  }

  /** Restarts renames too: perhaps not even their first step was written. */
  async #open(): Promise<void> {
    this.#renames.close();
    this.#desired.clear();
    const { folder, log } = this.#deps;
    const foreignFiles = await this.#folder.open();
    for (const part of this.#folder.parts()) this.#leftovers.add(part);
    this.#isOpen = true;
    if (foreignFiles.length > 0)
      log.warn('Envoy Gateway also reads files that mesh-gateway did not write', {
        folder,
        files: foreignFiles,
      });
  }

  #cachedText(object: object, make: () => string): string {
    const text = this.#texts.get(object) ?? make();
    this.#texts.set(object, text);
    return text;
  }

  #remove(part: string): void {
    this.#leftovers.delete(part);
    this.#desired.delete(part);
    this.#renames.forget(part);
    this.#folder.remove(part);
  }

  #put(part: string, text: string): void {
    this.#leftovers.delete(part);
    if (this.#desired.get(part) === text) return;
    this.#desired.set(part, text);
    let next: NextText = { text };
    this.#folder.put(part, text, now => {
      next = nextText(part, now, text, this.#renames.phaseOf(part));
      return next.text;
    });
    if (next.enter) this.#renames.enter(part, next.enter);
    if (!next.kept) return;
    const why = `restart Envoy Gateway, or give the object another name: it keeps ${next.kept.join(', ')}`;
    this.#deps.log.warn('Envoy Gateway keeps removed fields of an object', { object: part, why });
  }

  /** The folder is opened again, since it may have been changed from outside. */
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

  /** Logs each object once, and again when the reason changes. */
  #report(omitted: readonly OmittedObject[]): void {
    const reported = this.#omitted;
    this.#omitted = new Map(omitted.map(({ object, why }) => [object, why]));
    for (const one of omitted)
      if (reported.get(one.object) !== one.why)
        this.#deps.log.warn('object is not written for Envoy Gateway', one);
  }
}
