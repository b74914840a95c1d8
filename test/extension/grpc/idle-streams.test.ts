import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { callHeaders, FRAMES, frame, message, RawConnection } from '../../support/grpc/raw.ts';
import { programPath } from '../../support/programs/programs.ts';

const PROGRAM = 'test/support/grpc/idle-streams.ts';
const STREAMS = 1000;
const CONNECTIONS = 4;
const END_HEADERS = 4;

type Cost = {
  readonly kept: number;
  readonly rss: number;
  readonly heap: number;
  readonly arrayBuffers: number;
};

it('an idle stream costs less than 36 KB, and keeps no read buffer alive', async () => {
  const child = fork(programPath(PROGRAM), { execArgv: ['--expose-gc'], serialization: 'json' });
  onTestFinished(() => void child.kill());
  const [port] = (await once(child, 'message')) as [number];
  for (let count = 0; count < CONNECTIONS; count++) {
    const raw = await RawConnection.open(port);
    for (let stream = 0; stream < STREAMS; stream++) {
      const id = 2 * stream + 1;
      const call = frame(FRAMES.headers, END_HEADERS, id, callHeaders('/test.Service/Stream'));
      raw.send(call, frame(FRAMES.data, 0, id, message(Buffer.alloc(400))));
      if (stream % 20 === 0) await new Promise(setImmediate);
    }
    await eventually(() => expect(raw.of('data')).toHaveLength(STREAMS));
  }
  child.send(STREAMS * CONNECTIONS);
  const [cost] = (await once(child, 'message')) as [Cost];
  expect(cost.kept).toBe(STREAMS * CONNECTIONS);
  expect(cost.rss).toBeLessThan(36 * 1024);
  expect(cost.arrayBuffers).toBeLessThan(1024);
  expect(cost.heap).toBeLessThan(12 * 1024);
});
