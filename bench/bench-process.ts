import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { bundled, productCommand } from './bundled.ts';

/** A process of the bench, which prints a line when it is ready and answers each line with a line. */
export interface BenchProcess {
  /** Its first line. */
  readonly first: unknown;
  request(line: object): Promise<unknown>;
  /** Its CPU time, which other load of the machine hardly affects. */
  cpuMs(): number;
  /** Its resident memory. */
  bytes(): number;
  end(): Promise<void>;
}

/** Starts a program, such as relay/proxy-program, bundled and with the flags of the product. */
export async function startProgram(name: string, argument: string): Promise<BenchProcess> {
  const [program = '', ...args] = productCommand(bundled(name));
  const child = spawn(program, [...args, argument], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => {
    const line = await lines.next();
    if (line.done) throw new Error(`${name} ended`);
    return JSON.parse(line.value);
  };
  const { pid } = child;
  return {
    first: await next(),
    request: line => {
      child.stdin.write(`${JSON.stringify(line)}\n`);
      return next();
    },
    cpuMs: () => cpuMsOf(pid),
    bytes: () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    end: async () => {
      child.stdin.end();
      await ended;
    },
  };
}

const MS_PER_TICK = 10;

/** The CPU time of a process. */
export function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name, in parentheses, may have spaces in it.
  const fields = stat.replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}
