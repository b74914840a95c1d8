import { describe, expect, it } from 'vitest';
import { warningIn } from '../../lab/quickstart/warning.ts';

describe('the warning of a log line', () => {
  it.each([
    [{ level: 'info', msg: 'fine' }, undefined],
    [{ level: 'warn', msg: 'wrong', file: 'a.yaml', line: 3, why: 'port: 0' }, 'wrong: a.yaml:3: port: 0'],
    [{ level: 'warn', msg: 'left', object: 'Service/a/b', file: 'a.yaml' }, 'left: Service/a/b:a.yaml'],
    [{ level: 'error', msg: 'failed', error: { message: 'ENOSPC' } }, 'failed: ENOSPC'],
    [{ level: 'error', msg: 'failed' }, 'failed'],
  ])('%j', (line, warning) => {
    expect(warningIn(JSON.stringify(line))).toBe(warning);
  });
});
