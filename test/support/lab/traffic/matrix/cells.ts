import type { Protocol } from './protocol-routes.ts';

/** The client that connects to Envoy. */
export type ClientName = 'HTTP/1.1' | 'HTTP/2' | 'gRPC' | 'bytes' | 'TLS' | 'datagrams';

/** One property that is proved of a row. */
export type Property =
  | 'only by mesh'
  | '0 B'
  | '1 B'
  | '1200 B'
  | '1 MB'
  | '100 MB'
  | 'lines'
  | 'turns'
  | 'WebSocket'
  | 'held'
  | 'client resets'
  | 'service resets'
  | 'wrong CA'
  | 'node off';

/** The properties that are proved of one protocol over one data path with one client. */
export type Row = {
  readonly path: 'Proxy' | 'Direct';
  readonly protocol: Protocol;
  readonly client: ClientName;
  readonly properties: readonly Property[];
};

const PAYLOADS = ['only by mesh', '0 B', '1 B', '1 MB'] as const;
const RESETS = ['client resets', 'service resets'] as const;
const HTTP_1 = [...PAYLOADS, 'lines', 'turns', 'WebSocket', 'held', ...RESETS, 'node off'] as const;
const HTTP_2 = [...PAYLOADS, 'lines', 'turns', 'held', ...RESETS, 'node off'] as const;
const BYTES = [...PAYLOADS, 'turns', 'held', ...RESETS, 'node off'] as const;
const DATAGRAMS = ['only by mesh', '0 B', '1 B', '1200 B', 'turns', 'held', 'node off'] as const;

/** The whole matrix. */
const SHORT: readonly Row[] = [
  { path: 'Proxy', protocol: 'HTTP', client: 'HTTP/1.1', properties: HTTP_1 },
  { path: 'Proxy', protocol: 'HTTP', client: 'HTTP/2', properties: HTTP_2 },
  { path: 'Proxy', protocol: 'HTTPS', client: 'HTTP/1.1', properties: [...HTTP_1, 'wrong CA'] },
  { path: 'Proxy', protocol: 'HTTPS', client: 'HTTP/2', properties: HTTP_2 },
  { path: 'Proxy', protocol: 'gRPC', client: 'gRPC', properties: HTTP_2 },
  { path: 'Proxy', protocol: 'gRPC over TLS', client: 'gRPC', properties: [...HTTP_2, 'wrong CA'] },
  { path: 'Proxy', protocol: 'TCP', client: 'bytes', properties: BYTES },
  { path: 'Proxy', protocol: 'TLS passthrough', client: 'TLS', properties: BYTES },
  { path: 'Proxy', protocol: 'TLS originated', client: 'bytes', properties: [...BYTES, 'wrong CA'] },
  { path: 'Direct', protocol: 'HTTP', client: 'HTTP/1.1', properties: HTTP_1 },
  { path: 'Direct', protocol: 'HTTP', client: 'HTTP/2', properties: HTTP_2 },
  { path: 'Direct', protocol: 'UDP', client: 'datagrams', properties: DATAGRAMS },
];

/** The rows of the matrix; the long form has larger payloads. */
export function rowsOf(form: 'short' | 'long'): readonly Row[] {
  if (form === 'short') return SHORT;
  return SHORT.map(row =>
    row.client === 'datagrams'
      ? row
      : { ...row, properties: ['100 MB', ...row.properties] satisfies Property[] },
  );
}

/** The name of a row. */
export function nameOf({ path, protocol, client }: Row): string {
  return `${path}: ${protocol} by ${client}`;
}

/** One cell of the matrix: the name of its row, and a property. */
export type Cell = { readonly row: string; readonly property: Property };

/** The cells of rows. */
export function cellsOf(rows: readonly Row[]): readonly Cell[] {
  return rows.flatMap(row => row.properties.map(property => ({ row: nameOf(row), property })));
}
