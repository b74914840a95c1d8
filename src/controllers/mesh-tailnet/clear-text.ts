import { containsAddress, familyOf, rangesOf } from '../../api/ip.ts';

/** Loopback, link-local and private addresses, and those of a tailnet, which encrypts what is sent there. */
const PRIVATE = rangesOf([
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '100.64.0.0/10',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
]);

/** Of this machine and of Services of the cluster; a name without a dot is one of the operator's namespace. */
const PRIVATE_NAME = /^(?:[^.]+|.+\.(?:localhost|svc|svc\..+))$/;

/** Whether what is sent to a URL can be read on the way: by `http` to a host that is not private. */
export function isClearText(url: string): boolean {
  // Such as http://[1.2], to which nothing is sent.
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  if (protocol !== 'http:') return false;
  if (familyOf(host) === undefined) return host.includes(':') || !PRIVATE_NAME.test(host);
  return !containsAddress(PRIVATE, host);
}
