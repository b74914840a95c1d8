import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLog, parseLogLevel } from '../../src/telemetry/log.ts';
import type { LogLevel } from '../../src/telemetry/log.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';

/** The same values in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

type Line = Readonly<Record<string, unknown>>;

function written(level: LogLevel = 'debug') {
  const lines: string[] = [];
  const log = createLog({ level, to: { write: line => void lines.push(line) } });
  return { log, lines, parsed: () => lines.map(line => JSON.parse(line) as Line) };
}

/** The value of a field in one line. */
function shown(value: unknown): unknown {
  const { log, parsed } = written();
  log.info('a message', { field: value });
  return parsed()[0]?.['field'];
}

describe('a line', () => {
  it('is one JSON object with a level, a time, a message and fields', () => {
    const { log, lines, parsed } = written();
    log.warn('the device was deleted', { device: 'd1', attempts: 3, isLast: false, tags: ['a', 'b'] });
    expect(lines).toEqual([expect.stringMatching(/^\{.*\}\n$/)]);
    expect(parsed()).toEqual([
      {
        level: 'warn',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
        msg: 'the device was deleted',
        device: 'd1',
        attempts: 3,
        isLast: false,
        tags: ['a', 'b'],
      },
    ]);
  });

  it('is one line for any message', () => {
    const { log, lines } = written();
    log.info('one\n{"level":"error"}\n', { field: 'two\nlines' });
    expect(lines.join('').split('\n')).toHaveLength(2);
  });

  it('leaves its message as it is', () => {
    const { log, parsed } = written();
    log.info('100%s %d %j', { a: 1 });
    expect(parsed()[0]).toMatchObject({ msg: '100%s %d %j', a: 1 });
  });

  it('keeps its own level, time and message', () => {
    const { log, parsed } = written();
    log.info('a message', { level: 'none', time: 0, msg: 'other' });
    expect(parsed()[0]).toMatchObject({
      level: 'info',
      msg: 'a message',
      level_: 'none',
      time_: 0,
      msg_: 'other',
    });
  });

  it('logs objects that resemble a request as fields', () => {
    const { log, parsed } = written();
    log.info('a message', { method: 'GET', headers: { a: 'b' }, socket: {}, err: { message: 'x' } });
    expect(parsed()[0]).toMatchObject({ method: 'GET', headers: { a: 'b' }, err: { message: 'x' } });
  });

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'then', 'toJSON', ''])(
    'has a field of the name %j',
    name => {
      const { log, lines } = written();
      log.info('a message', JSON.parse(JSON.stringify({ other: 1 }).replace('other', name)) as Line);
      expect(lines[0]).toContain(`${JSON.stringify(name)}:1`);
    },
  );
});

describe('a level', () => {
  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ] as const)('of %s lets %j through', (level, expected) => {
    const { log, parsed } = written(level);
    for (const each of ['debug', 'info', 'warn', 'error'] as const) log[each]('a message');
    expect(parsed().map(line => line['level'])).toEqual(expected);
  });

  it.each([
    ['info', 'info'],
    ['DEBUG', 'debug'],
    [' warn\n', 'warn'],
  ])('is read from %j', (text, level) => expect(parseLogLevel(text)).toBe(level));

  it.each(['', 'verbose', 'trace', '3', 'constructor'])('cannot be %j, and the error names it', text => {
    const call = () => parseLogLevel(text);
    expect(call).toThrow(SettingError);
    expect(call).toThrow(
      `LOG_LEVEL: ${JSON.stringify(text)} is not a level; write one of debug, info, warn, error`,
    );
  });

  it('that is off does not read fields', () => {
    const { log } = written('info');
    let looked = false;
    log.debug('a message', {
      get field() {
        looked = true;
        return 1;
      },
    });
    expect(looked).toBe(false);
  });
});

describe('a child', () => {
  it('adds its fields to each line, and the newest wins', () => {
    const { log, lines, parsed } = written();
    log.child({ controller: 'a', object: 'b' }).child({ object: 'c' }).info('a message', { n: 1 });
    log.info('another');
    expect(parsed()[0]).toMatchObject({ controller: 'a', object: 'c', n: 1 });
    expect(lines[0]?.match(/"object"/g)).toHaveLength(1);
    expect(parsed()[1]).not.toHaveProperty('controller');
  });

  it('shows its fields as they were when it was made', () => {
    const { log, parsed } = written();
    const fields = { state: 'before' };
    const child = log.child(fields);
    fields.state = 'after';
    child.info('a message');
    expect(parsed()[0]).toMatchObject({ state: 'before' });
  });
});

describe('an error', () => {
  class Refused extends Error {
    readonly reason = 'Denied';
    override readonly name = 'Refused';
  }

  it('is shown with its name, message, fields, causes and stack', () => {
    const cause = new TypeError('the root', { cause: { code: 7 } });
    expect(shown(new Refused('no', { cause }))).toMatchObject({
      name: 'Refused',
      message: 'no',
      reason: 'Denied',
      cause: { name: 'TypeError', message: 'the root', cause: { code: 7 } },
      stack: expect.stringContaining('log.test.ts') as string,
    });
  });

  it('shows the errors that it gathers', () => {
    const errors = [new Error('one'), new Error('two')];
    expect(shown(new AggregateError(errors, 'both'))).toMatchObject({
      errors: [{ message: 'one' }, { message: 'two' }],
    });
  });

  it('may be its own cause', () => {
    const error = new Error('round');
    error.cause = error;
    expect(shown(error)).toMatchObject({ message: 'round', cause: '[circular]' });
  });
});

function deep(levels: number): unknown {
  let value: unknown = 'bottom';
  for (let level = 0; level < levels; level++) value = { next: value };
  return value;
}

const shared = { a: 1 };
const circle: Record<string, unknown> = {};
circle['self'] = circle;

const throwing = {
  get bad(): string {
    throw new Error('no');
  },
  good: 1,
};

describe('a value', () => {
  it.each<[string, unknown, unknown]>([
    ['a big integer', 2n ** 70n, '1180591620717411303424'],
    ['not a number', Number.NaN, 'NaN'],
    ['infinity', -Infinity, '-Infinity'],
    ['nothing', null, null],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a date that is none', new Date(Number.NaN), '[no date]'],
    ['bytes', Buffer.from('abc'), '[3 bytes]'],
    ['an address', new URL('http://a.example/b?c=d'), 'http://a.example/b?c=d'],
    ['a map', new Map([['a', 1]]), {}],
    ['a list with holes', [, 1], [null, 1]],
    ['something twice', [shared, shared], [{ a: 1 }, { a: 1 }]],
    ['a circle', circle, { self: '[circular]' }],
    ['a getter that throws', throwing, { bad: '[unreadable]', good: 1 }],
    ['a proxy that throws', new Proxy({}, { ownKeys: () => [][1] as never }), '[unreadable]'],
    ['a text in half', 'a\ud800', 'a\ud800'],
  ])('that is %s is shown', (_what, value, expected) => expect(shown(value)).toEqual(expected));

  it('that is a function or undefined is left out', () => {
    const { log, parsed } = written();
    log.info('a message', { a: undefined, b: () => 1 });
    expect(Object.keys(parsed()[0] ?? {})).toEqual(['level', 'time', 'msg']);
  });

  it('is not formatted by its own method', () => {
    const called: string[] = [];
    const spy = (name: string) => () => {
      called.push(name);
      return 'shown';
    };
    const date = Object.assign(new Date(0), { toISOString: spy('toISOString'), toJSON: spy('toJSON') });
    shown({ toJSON: spy('toJSON'), toString: spy('toString'), [Symbol.toPrimitive]: spy('toPrimitive') });
    expect([shown(date), called]).toEqual(['1970-01-01T00:00:00.000Z', []]);
  });

  it.each<[string, unknown]>([
    ['is deep', deep(10_000)],
    ['is long', 'x'.repeat(5_000_000)],
    ['is a long list', Array.from({ length: 1_000_000 }, (_, index) => index)],
    ['is a long list of nothing', new Array(4_000_000_000)],
    [
      'has many fields',
      Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`f${index}`, index])),
    ],
    ['has many long texts', Array.from({ length: 100 }, () => 'y '.repeat(4000))],
    ['is wide and deep', wide(4)],
    ['is a long name', { ['n'.repeat(1_000_000)]: 1 }],
  ])('that %s takes a bounded part of a line', (_what, value) => {
    const { log, lines } = written();
    log.info('a message', { value });
    expect(lines[0]?.length).toBeLessThan(50_000);
    expect(lines[0]).toMatch(/cut|more|too deep/);
  });

  it('may be any value, and is one line of JSON', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      maxDepth: 6,
    });
    const property = fc.property(anything, fc.string(), (value, name) => {
      const { log, lines } = written();
      log.info('a message', { [name]: value });
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'a message' });
      expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1);
    });
    fc.assert(property, { seed, numRuns: 2000 });
  });

  it('may be any value in place of fields', () => {
    const { log, lines } = written();
    for (const fields of ['text', 3, null, [], new Proxy({}, {}), new Error('e')]) {
      log.info('a message', fields as unknown as Line);
      log.child(fields as unknown as Line).info(Symbol('s') as unknown as string);
    }
    expect(lines).toHaveLength(12);
  });
});

function wide(levels: number): unknown {
  return levels === 0 ? 1 : Array.from({ length: 30 }, () => wide(levels - 1));
}

describe('standard output', () => {
  const program = `
    const { createLog } = await import('./src/telemetry/log.ts');
    const log = createLog({ level: 'info' });
    for (let n = 0; n < 3; n++) log.info('a message', { n });
    process.stderr.write('alive');
  `;

  async function run(output: 'pipe' | number) {
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
      stdio: ['ignore', output, 'pipe'],
    });
    const closed = once(child, 'close');
    const read = async (stream: Readable | null) => (stream ? await readAll(stream) : '');
    const [written, errors] = await Promise.all([read(child.stdout), read(child.stderr)]);
    const [code] = (await closed) as [number];
    return { code, written, errors };
  }

  it('writes lines synchronously', async () => {
    const { code, written } = await run('pipe');
    const lines = written.trim().split('\n');
    expect([code, lines.map(line => (JSON.parse(line) as Line)['n'])]).toEqual([0, [0, 1, 2]]);
  });

  it('may be full without an end to the process', async () => {
    const full = openSync('/dev/full', 'w');
    const outcome = await run(full);
    closeSync(full);
    expect(outcome).toEqual({ code: 0, written: '', errors: 'alive' });
  });
});
