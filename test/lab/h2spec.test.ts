import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { locateBinaries } from '../../src/lab/locate.ts';
import { servePages } from '../support/grpc/page.ts';
import { echo, serving } from '../support/grpc/serving.ts';

const h2spec = locateBinaries(process.env)('h2spec');

/** What became of a case, by its section and what it does. */
type Outcomes = ReadonlyMap<string, 'passed' | 'skipped' | 'failed'>;

/** Lets the conformance tests of others judge a server, those that are strict included. */
async function judge(port: number): Promise<Outcomes> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-h2spec-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const report = join(folder, 'report.xml');
  const args = ['--strict', '--timeout', '5', '--port', String(port), '--junit-report', report];
  await new Promise<void>(resolve => execFile(h2spec, args, () => resolve()));
  const cases = readFileSync(report, 'utf8').matchAll(
    /<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs,
  );
  return new Map(
    Array.from(cases, ([, section = '', does = '', inside = '']) => [
      `${section}: ${does}`,
      /<(?:error|failure)/.test(inside) ? 'failed' : inside.includes('<skipped') ? 'skipped' : 'passed',
    ]),
  );
}

const thatAre = (outcomes: Outcomes, ...which: readonly string[]) =>
  [...outcomes].filter(([, outcome]) => which.includes(outcome)).map(([name]) => name);

/** What gRPC has no answer to: each request of the tests is a GET, which is refused at once and without data. */
const NOT_OF_GRPC = {
  'waits for data': [
    'generic/2: Sends a WINDOW_UPDATE frame on half-closed (remote) stream',
    'generic/2: Sends a PRIORITY frame on half-closed (remote) stream',
  ],
  'leaves the tests out, for want of data': [
    'http2/6.5.3: Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE',
    'http2/6.9.1: Sends SETTINGS frame to set the initial window size to 1 and sends HEADERS frame',
    'http2/6.9.2: Changes SETTINGS_INITIAL_WINDOW_SIZE after sending HEADERS frame',
    'http2/6.9.2: Sends a SETTINGS frame for window size to be negative',
  ],
  'never has as many streams at a time as it may have': [
    'http2/5.1.2: Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded',
  ],
};

describe('HTTP/2 as we speak it', () => {
  it('passes all tests of h2spec with a page for an answer', async () => {
    const pages = await servePages();
    const outcomes = await judge(pages.port);
    expect(outcomes.size).toBeGreaterThan(140);
    expect(thatAre(outcomes, 'failed', 'skipped')).toEqual([]);
    expect(pages.mistakes).toEqual([]);
    await expect.poll(() => pages.open.size, { timeout: 60_000 }).toBe(0);
  });

  it('passes them as the gRPC server does, but for what gRPC has no answer to', async () => {
    const server = await serving({ methods: { '/test.Service/Echo': echo } });
    const outcomes = await judge(server.port);
    expect(outcomes.size).toBeGreaterThan(140);
    expect(thatAre(outcomes, 'failed', 'skipped').sort()).toEqual(Object.values(NOT_OF_GRPC).flat().sort());
    expect(server.lines).toEqual([]);
  });
});
