import { SettingError } from './setting-error.ts';

/** An address to listen on; without a host, all addresses of the machine. */
export type Address = { readonly host?: string; readonly port: number };

const FORM = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]*)):(\d{1,5})$/i;

/** Parses an address such as :8080, 127.0.0.1:8080 or [::1]:8080; throws SettingError. */
export function parseAddress(setting: string, text: string): Address {
  const [, ipv6, name, digits] = FORM.exec(text.trim()) ?? [];
  const port = Number(digits);
  const host = ipv6 ?? name;
  if (host === undefined || port > 65535) {
    const form =
      'write a port with a colon before it, such as :8080, or an address too, such as 127.0.0.1:8080';
    throw new SettingError(setting, `${JSON.stringify(text)} is not an address to listen on; ${form}`);
  }
  return host === '' ? { port } : { host, port };
}

/** The text of an address. */
export function formatAddress({ host = '', port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
