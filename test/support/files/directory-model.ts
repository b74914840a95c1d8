/** The content of a file: objects, an invalid object, or text that is not YAML. */
export type Content =
  | { readonly is: 'objects'; readonly ports: Ports; readonly hasInvalid: boolean }
  | { readonly is: 'not-yaml' }
  | { readonly is: 'empty' };

/** The objects of a file by their names, identified by their ports. */
export type Ports = ReadonlyMap<string, number>;

/** An object as the directory must return it. Two with the same number are the same object, with one uid. */
export type ObjectModel = {
  readonly number: number;
  readonly port: number;
  readonly generation: number;
  readonly finalizers: readonly string[];
  readonly isDeleted: boolean;
  readonly total: number | undefined;
  /** Its file. */
  readonly file: string;
};

/** What a directory must return, computed in the simplest way. */
export class DirectoryModel {
  readonly files = new Map<string, Content>();
  readonly objects = new Map<string, ObjectModel>();
  #ports = new Map<string, Ports>();
  #numbers = 0;

  /** Applies the current content of the files. */
  settle(): void {
    const entries = [...this.files].map(
      ([file, content]) => [file, portsIn(content, this.#ports.get(file))] as const,
    );
    this.#ports = new Map(entries);
    const names = [...this.#ports.values()].flatMap(ports => [...ports.keys()]);
    for (const name of new Set([...names, ...this.objects.keys()])) this.#settleObject(name);
  }

  /** A restart keeps only the files. */
  restart(): void {
    this.#ports.clear();
    this.objects.clear();
  }

  change(name: string, change: (object: ObjectModel) => Partial<ObjectModel>): void {
    const object = this.objects.get(name);
    if (!object) return;
    const after = { ...object, ...change(object) };
    if (after.isDeleted && after.finalizers.length === 0) this.objects.delete(name);
    else this.objects.set(name, after);
    this.#settleObject(name);
  }

  #settleObject(name: string): void {
    const definers = [...this.#ports].filter(([, ports]) => ports.has(name)).sort();
    const [file, port] = definers.map(([path, ports]) => [path, ports.get(name)] as const)[0] ?? [];
    const old = this.objects.get(name);
    if (old?.isDeleted) return;
    if (file === undefined || port === undefined) {
      if (old && old.finalizers.length > 0)
        this.objects.set(name, { ...old, isDeleted: true, generation: old.generation + 1 });
      else this.objects.delete(name);
    } else if (old) {
      this.objects.set(name, {
        ...old,
        file,
        port,
        generation: old.generation + (old.port === port ? 0 : 1),
      });
    } else {
      const fresh = { generation: 1, finalizers: [], isDeleted: false, total: undefined };
      this.objects.set(name, { ...fresh, number: ++this.#numbers, file, port });
    }
  }
}

function portsIn(content: Content, before: Ports = new Map()): Ports {
  switch (content.is) {
    case 'not-yaml':
    case 'empty':
      return before;
    case 'objects':
      return content.hasInvalid ? new Map([...before, ...content.ports]) : content.ports;
  }
}
