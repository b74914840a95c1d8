import { ConnectionError } from './errors.ts';
import { FRAMES, MOST, MOST_FRAME_BYTES, HEAD_BYTES, writeHead } from './frames.ts';

const SETTINGS = {
  push: 2,
  streams: 3,
  window: 4,
  frameBytes: 5,
  headerBytes: 6,
} as const;

const SETTING_BYTES = 6;
const MOST_OF_A_FRAME = 0xff_ffff;

/** The window of each stream and of a connection where nobody has said otherwise. */
export const USUAL_WINDOW = 65_535;

/** What callers are told at the beginning. */
export type OwnSettings = {
  readonly streams: number;
  readonly window: number;
  readonly headerBytes: number;
};

/** The first frame of a connection. */
export function settingsFrame({ streams, window, headerBytes }: OwnSettings): Buffer {
  const settings = [
    [SETTINGS.streams, streams],
    [SETTINGS.window, window],
    [SETTINGS.headerBytes, headerBytes],
  ] as const;
  const frame = Buffer.alloc(HEAD_BYTES + SETTING_BYTES * settings.length);
  writeHead(frame, 0, { bytes: frame.length - HEAD_BYTES, type: FRAMES.settings, flags: 0, id: 0 });
  for (const [index, [name, value]] of settings.entries()) {
    frame.writeUInt16BE(name, HEAD_BYTES + SETTING_BYTES * index);
    frame.writeUInt32BE(value, HEAD_BYTES + SETTING_BYTES * index + 2);
  }
  return frame;
}

/** Reads the settings of a caller, of which the window of streams is the only one that is used here; all are judged. */
export function windowIn(payload: Buffer): number | undefined {
  if (payload.length % SETTING_BYTES !== 0)
    throw new ConnectionError('frameSize', 'settings have another length');
  let window: number | undefined;
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const [name, value] = [payload.readUInt16BE(at), payload.readUInt32BE(at + 2)];
    if (name === SETTINGS.window) window = judgedWindow(value);
    else if (name === SETTINGS.push && value > 1)
      throw new ConnectionError('protocol', 'a push is no yes or no');
    else if (name === SETTINGS.frameBytes) judgeFrameBytes(value);
  }
  return window;
}

function judgedWindow(value: number): number {
  if (value > MOST) throw new ConnectionError('flowControl', 'a window is larger than windows are');
  return value;
}

function judgeFrameBytes(value: number): void {
  if (value < MOST_FRAME_BYTES || value > MOST_OF_A_FRAME)
    throw new ConnectionError('protocol', 'frames have another size');
}
