/** What is traced: a request over HTTP, or a connection to a port. */
export type TracedRequest = {
  /** How a listener is addressed: `connection` is TCP, TLS or UDP. */
  readonly over: 'HTTP' | 'HTTPS' | 'connection';
  readonly host: string;
  readonly port: number;
  readonly method: string;
  readonly path: string;
  /** The path with the query, as it is sent. */
  readonly target: string;
  /** By their names; of a repeated one the first. */
  readonly query: ReadonlyMap<string, string>;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
};

const PORTS = { 'http:': 80, 'https:': 443 } as const;

/** Reads a URL or HOST:PORT, a method, and headers such as `Name: value`; fails with what is wrong. */
export function parseRequest(
  target: string,
  { method, headers }: { readonly method: string; readonly headers: readonly string[] },
): TracedRequest {
  const named = new Map(headers.map(parseHeader));
  if (!target.includes('://')) return { ...connectionTo(target), method, headers: named };
  const url = URL.canParse(target) ? new URL(target) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') throw notTraceable(target);
  return {
    over: url.protocol === 'http:' ? 'HTTP' : 'HTTPS',
    host: hostOf(named.get('host') ?? url.hostname),
    port: Number(url.port) || PORTS[url.protocol],
    method: method.toUpperCase(),
    path: url.pathname,
    target: `${url.pathname}${url.search}`,
    query: new Map([...url.searchParams].reverse()),
    headers: named,
  };
}

/** With the URL that is meant, where only its scheme is missing. */
function notTraceable(target: string): Error {
  const isBare = /^[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(target);
  const hint = isBare ? `: write http://${target}${target.includes('/') ? '' : '/'}` : '';
  return new Error(`trace: ${JSON.stringify(target)} is neither a URL of http or https nor HOST:PORT${hint}`);
}

function parseHeader(header: string): readonly [string, string] {
  const [, name = '', value = ''] = /^([^:\s]+):\s*(.*)$/.exec(header) ?? [];
  if (name === '') throw new Error(`trace: --header ${JSON.stringify(header)} is not NAME: VALUE`);
  return [name.toLowerCase(), value];
}

function connectionTo(target: string): Omit<TracedRequest, 'method' | 'headers'> {
  const [, host = '', port = ''] = /^\[?([^\]]*?)\]?:(\d{1,5})$/.exec(target) ?? [];
  if (host === '' || Number(port) < 1 || Number(port) > 65_535) throw notTraceable(target);
  return {
    over: 'connection',
    host: host.toLowerCase(),
    port: Number(port),
    path: '/',
    target: '/',
    query: new Map(),
  };
}

/** Without a port, which a Host header may have. */
function hostOf(text: string): string {
  return text.replace(/:\d+$/, '').toLowerCase();
}
