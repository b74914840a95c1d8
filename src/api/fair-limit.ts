/** A task that runs once it is its turn. It never rejects. */
type Task = () => Promise<void>;

type Group = { running: number; readonly waiting: Task[] };

/**
 * Limits how many tasks run at once, fairly between groups. A group may have as many running tasks as there are free
 * places, so that one whose tasks hang takes at most half of all, and leaves room for every other.
 */
export class FairLimit {
  readonly #max: number;
  /** Those with tasks, in the order of their turns. */
  readonly #groups = new Map<string, Group>();
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs a task, at once if there is room. */
  run(name: string, task: Task): void {
    const group = this.#groups.get(name) ?? { running: 0, waiting: [] };
    this.#groups.set(name, group);
    group.waiting.push(task);
    this.#startWaiting();
  }

  /** Drops the tasks that wait. */
  clear(): void {
    for (const group of this.#groups.values()) group.waiting.length = 0;
  }

  #startWaiting(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const [name, group, task] = next;
      // Behind the others.
      this.#groups.delete(name);
      this.#groups.set(name, group);
      this.#count(group, 1);
      void task().then(() => {
        this.#count(group, -1);
        if (group.running === 0 && group.waiting.length === 0) this.#groups.delete(name);
        this.#startWaiting();
      });
    }
  }

  #next(): [string, Group, Task] | undefined {
    const free = this.#max - this.#running;
    for (const [name, group] of this.#groups) {
      if (group.running >= free) continue;
      const task = group.waiting.shift();
      if (task) return [name, group, task];
    }
    return undefined;
  }

  #count(group: Group, by: number): void {
    group.running += by;
    this.#running += by;
  }
}
