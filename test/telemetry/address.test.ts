import { describe, expect, it } from 'vitest';
import { formatAddress, parseAddress } from '../../src/telemetry/address.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';

describe('an address', () => {
  it.each([
    [':8080', { port: 8080 }],
    [':0', { port: 0 }],
    ['127.0.0.1:8081', { host: '127.0.0.1', port: 8081 }],
    ['localhost:65535', { host: 'localhost', port: 65535 }],
    ['[::1]:8080', { host: '::1', port: 8080 }],
    [' :8080\n', { port: 8080 }],
  ])('%j is read, and written as it was', (text, address) => {
    expect(parseAddress('METRICS_ADDRESS', text)).toEqual(address);
    expect(formatAddress(address)).toBe(text.trim());
  });

  it.each([
    '',
    '8080',
    ':',
    ':a',
    ':-1',
    ':65536',
    ':80800000',
    '::1:8080',
    'a b:80',
    'http://a:80',
    '[::1]',
    'a:1/',
  ])('%j is refused, with the setting and what to write', text => {
    const call = () => parseAddress('METRICS_ADDRESS', text);
    expect(call).toThrow(SettingError);
    expect(call).toThrow(/^METRICS_ADDRESS: ".*" is not an address to listen on; write .*:8080/);
  });
});
