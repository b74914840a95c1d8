import { durationMs } from '../api/duration.ts';
import { SettingError } from '../telemetry/setting-error.ts';

/** How many objects each controller looks at at once, if nobody says otherwise. */
export const DEFAULT_CONCURRENCY = '10';

/** How often each object is looked at when nothing changes, if nobody says otherwise. */
export const DEFAULT_SYNC_PERIOD = '30s';

/** A number of things, from 1 on; fails with SettingError that names the setting. */
export function parseCount(setting: string, text: string): number {
  const count = /^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : 0;
  if (count > 0) return count;
  throw new SettingError(setting, `${shown(text)} is not a whole number from 1 on, such as 10`);
}

/** Milliseconds of a duration longer than none; fails with SettingError that names the setting. */
export function parseDuration(setting: string, text: string): number {
  const ms = durationMs(text.trim());
  if (ms !== undefined && ms > 0) return ms;
  throw new SettingError(setting, `${shown(text)} is not a duration longer than 0, such as 30s or 1m30s`);
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

/** Bytes of a size; fails with SettingError that names the setting. */
export function parseSize(setting: string, text: string): number {
  const [, number = '', unit = ''] = /^([0-9]{1,15})([KMG]i?)?$/.exec(text.trim()) ?? [];
  const bytes = Number(number) * (UNITS[unit] ?? 0);
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw new SettingError(setting, `${shown(text)} is not a size, such as 100M, 100Mi or a number of bytes`);
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}
