import { readFile, rename, writeFile } from 'node:fs/promises';
import { jsonObjectIn } from '../api/json.ts';
import type { Log } from '../telemetry/log.ts';

/** The data of a ConfigMap. */
type Data = Readonly<Record<string, string>>;

/** Keeps the last data of a ConfigMap in a file, for a restart while the API server is away. */
export class KeptData {
  readonly #file: string;
  readonly #log: Log;
  #text = '';
  #writing: Promise<void> | undefined;

  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
  }

  /** The data that was kept; undefined where there is none. */
  async read(): Promise<Data | undefined> {
    const text = await readFile(this.#file, 'utf8').catch(() => '');
    const data = Object.entries(jsonObjectIn(text) ?? {});
    const texts = data.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    return texts.length > 0 ? Object.fromEntries(texts) : undefined;
  }

  /** Replaces the data, soon; of several in quick succession, the last one stays. */
  keep(data: Data): void {
    const text = JSON.stringify(data);
    if (text === this.#text) return;
    this.#text = text;
    this.#writing ??= this.#write();
  }

  /** Resolves when the file has the last data. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    let written = '';
    while (written !== this.#text) {
      written = this.#text;
      try {
        await writeFile(`${this.#file}.new`, written, { mode: 0o600 });
        await rename(`${this.#file}.new`, this.#file);
      } catch (error) {
        this.#log.warn('cannot keep the ConfigMap for a restart', { file: this.#file, error });
        // So that the next data are written, also where they are the same.
        if (written === this.#text) this.#text = written = '';
      }
    }
    this.#writing = undefined;
  }
}
