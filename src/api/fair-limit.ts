/** A task that runs once it is its turn. It never rejects. */
type Task = () => Promise<void>;

type Group = {
  readonly name: string;
  readonly parent: Group | undefined;
  /** Those with tasks, in the order of their turns. */
  readonly groups: Map<string, Group>;
  readonly waiting: Task[];
  /** Including those of its groups. */
  running: number;
};

/** How many times as many running tasks as free places the groups of a group may have together. */
const TOGETHER = 4;

/**
 * Limits how many tasks run at once, fairly between groups, which take turns and may consist of groups themselves. A group
 * may have as many running tasks as there are free places, so that one whose tasks hang takes at most half of all, and
 * leaves room for every other. Several groups of one group get four fifths of all.
 */
export class FairLimit {
  readonly #max: number;
  readonly #all = newGroup('', undefined);

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs a task of the group at a path of names, at once if there is room. */
  run(path: readonly string[], task: Task): void {
    const group = path.reduce(childOf, this.#all);
    group.waiting.push(task);
    this.#startWaiting();
  }

  /** Drops the tasks that wait. */
  clear(): void {
    clear(this.#all);
  }

  #startWaiting(): void {
    for (let turn = this.#next(); turn; turn = this.#next()) {
      const { group, task } = turn;
      begin(group);
      void task().then(() => {
        end(group);
        this.#startWaiting();
      });
    }
  }

  #next(): Turn | undefined {
    return nextTurn(this.#all, this.#max - this.#all.running);
  }
}

type Turn = { readonly group: Group; readonly task: Task };

/** The next task of the groups of a group in which as many places are free. */
function nextTurn({ groups }: Group, free: number): Turn | undefined {
  if (free <= 0) return undefined;
  for (const group of groups.values()) {
    const task = group.running < free ? group.waiting.shift() : undefined;
    if (task) return { group, task };
    const turn = nextTurn(group, Math.min(free, TOGETHER * free - group.running));
    if (turn) return turn;
  }
  return undefined;
}

function begin(group: Group): void {
  group.running++;
  const { name, parent } = group;
  if (!parent) return;
  // Behind the others.
  parent.groups.delete(name);
  parent.groups.set(name, group);
  begin(parent);
}

function end(group: Group): void {
  group.running--;
  const { name, parent, groups, waiting, running } = group;
  if (!parent) return;
  if (running === 0 && waiting.length === 0 && groups.size === 0) parent.groups.delete(name);
  end(parent);
}

function clear({ groups, waiting }: Group): void {
  waiting.length = 0;
  groups.forEach(clear);
}

function childOf(parent: Group, name: string): Group {
  const group = parent.groups.get(name) ?? newGroup(name, parent);
  parent.groups.set(name, group);
  return group;
}

function newGroup(name: string, parent: Group | undefined): Group {
  return { name, parent, groups: new Map(), waiting: [], running: 0 };
}
