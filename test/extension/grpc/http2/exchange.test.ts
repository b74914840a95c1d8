import { once } from 'node:events';
import { connect } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { servePages } from '../../../support/grpc/page.ts';

/** The same requests in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const bytes = (length: number, start: number) =>
  Buffer.from(Array.from({ length }, (_, index) => (start + index * 31) % 251));

type Answer = { readonly body: Buffer; readonly trailers: unknown };

/** One request by a client that is not ours, its body written in parts. */
async function ask(session: ClientHttp2Session, parts: readonly Buffer[], slow: boolean): Promise<Answer> {
  const stream = session.request({ ':method': 'POST', ':path': '/' });
  let trailers: unknown;
  stream.on('trailers', (got: Readonly<Record<string, unknown>>) => (trailers = got['x-end']));
  for (const part of parts) {
    if (!stream.write(part)) await once(stream, 'drain');
  }
  stream.end();
  const pieces: Buffer[] = [];
  for await (const piece of stream) {
    pieces.push(piece as Buffer);
    if (slow) await new Promise(setImmediate);
  }
  return { body: Buffer.concat(pieces), trailers };
}

describe('requests and answers of any size', () => {
  const request = fc.record({
    parts: fc.array(fc.integer({ min: 0, max: 90_000 }), { maxLength: 4 }),
    slow: fc.boolean(),
  });
  const settings = fc.record({
    initialWindowSize: fc.constantFrom(1, 1000, 65_535, 1_000_000),
    maxFrameSize: fc.constantFrom(16_384, 1_000_000),
  });

  it('come through whole, many at a time, whatever windows there are', async () => {
    const pages = await servePages({ answer: body => body, window: 20_000 });
    const property = fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 12 }),
      settings,
      async (requests, wish) => {
        const session = connect(`http://127.0.0.1:${pages.port}`, { settings: wish });
        onTestFinished(() => session.destroy());
        const small = wish.initialWindowSize === 1 ? 0.001 : 1;
        const sent = requests.map(({ parts, slow }, at) => ({
          parts: parts.map(length => bytes(Math.floor(length * small), at)),
          slow,
        }));
        const answers = await Promise.all(sent.map(({ parts, slow }) => ask(session, parts, slow)));
        for (const [at, { body, trailers }] of answers.entries()) {
          expect(body.equals(Buffer.concat(sent[at]?.parts ?? []))).toBe(true);
          expect(trailers).toBe('yes');
        }
        session.destroy();
      },
    );
    await fc.assert(property, { seed, numRuns: 40 });
    expect(pages.mistakes).toEqual([]);
    await expect.poll(() => pages.open.size).toBe(0);
  });
});
