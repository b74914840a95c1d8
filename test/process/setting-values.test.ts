import { describe, expect, it } from 'vitest';
import { parseCount, parseDuration, parseSize } from '../../src/process/settings.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';

/** The message with which a text is refused. */
function refusalOf(parse: (setting: string, text: string) => number, text: string): string {
  try {
    return `was read as ${parse('THE_SETTING', text)}`;
  } catch (error) {
    if (error instanceof SettingError && error.setting === 'THE_SETTING') return error.message;
    throw error;
  }
}

describe('a count', () => {
  it.each([
    ['1', 1],
    ['10', 10],
    [' 10\n', 10],
  ])('%j is %i', (text, count) => {
    expect(parseCount('CONTROLLER_MAX_CONCURRENT_RECONCILES', text)).toBe(count);
  });

  it.each(['', '0', '-1', '1.5', 'ten', '1e3', '0x10', '10000000000', '1 0'])('%j is refused', text => {
    expect(refusalOf(parseCount, text)).toBe(
      `THE_SETTING: ${JSON.stringify(text)} is not a whole number from 1 on, such as 10`,
    );
  });
});

describe('a duration', () => {
  it.each([
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['250ms', 250],
    ['1.5h', 5_400_000],
    [' 10s ', 10_000],
  ])('%j is %i ms', (text, ms) => {
    expect(parseDuration('SYNC_PERIOD', text)).toBe(ms);
  });

  it.each(['', '0', '0s', '-1s', '30', 's', '30 s', '1d', '1e3s', 'Infinity', 'NaN'])(
    '%j is refused',
    text => {
      expect(refusalOf(parseDuration, text)).toBe(
        `THE_SETTING: ${JSON.stringify(text)} is not a duration longer than 0, such as 30s or 1m30s`,
      );
    },
  );
});

describe('a size', () => {
  it.each([
    ['100M', 100_000_000],
    ['100Mi', 104_857_600],
    ['4194304', 4_194_304],
    ['1K', 1000],
    ['1Ki', 1024],
    ['2G', 2_000_000_000],
    ['2Gi', 2_147_483_648],
  ])('%j is %i bytes', (text, bytes) => {
    expect(parseSize('MAX_MESSAGE_SIZE', text)).toBe(bytes);
  });

  it.each(['', '0', '0M', '-1', '1.5M', '100MB', '100m', '100 M', 'M', '1T', '999999999999999G'])(
    '%j is refused',
    text => {
      expect(refusalOf(parseSize, text)).toBe(
        `THE_SETTING: ${JSON.stringify(text)} is not a size, such as 100M, 100Mi or a number of bytes`,
      );
    },
  );

  it('shows only the beginning of an invalid value', () => {
    expect(refusalOf(parseSize, 'x'.repeat(10_000)).length).toBeLessThan(200);
  });
});
