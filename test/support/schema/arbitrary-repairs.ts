/** A value that is valid except for the rules of its own object. */
type Draft = Readonly<Record<string, unknown>>;

/** Changes random objects of each title so that they satisfy the CEL rules about several fields. */
export const repairs: Readonly<Record<string, (draft: Draft) => Draft>> = {
  MeshEndpoint: fitProtocol,
  EndpointTemplate: fitProtocol,
  EndpointTls: draft => ('caRef' in draft ? without(draft, 'ca') : draft),
  TagSelector: fitOperator,
  LabelRequirement: fitOperator,
  MeshEndpointsSpec: draft => withoutUdpServices(withEndpoints(withPositiveSelector(draft))),
  AllowedNamespaces: draft =>
    draft['from'] === 'Selector' ? { selector: {}, ...draft } : without(draft, 'selector'),
  Toleration: draft => ({
    ...(draft['operator'] === 'Exists' ? without(draft, 'value') : { ...draft, key: 'dedicated' }),
    ...('tolerationSeconds' in draft ? { effect: 'NoExecute' } : {}),
  }),
  ControlCA: draft =>
    'ca' in draft ? without(draft, 'configMapRef') : { configMapRef: { name: 'control-ca' }, ...draft },
  FailoverBackend: draft =>
    (draft['kind'] ?? 'Service') === 'Service'
      ? { port: 80, ...draft, group: '' }
      : { ...draft, group: 'example.com' },
  MeshPool: draft =>
    draft['mode'] === 'External'
      ? { mode: 'External', replicas: draft['replicas'] ?? 1, addresses: ['127.0.0.1:1055'] }
      : without(draft, 'addresses'),
};

const FITTING: Readonly<Record<string, string>> = {
  HTTP: 'HTTP',
  HTTPS: 'GRPC',
  gRPC: 'GRPC',
  TCP: 'TCP',
  TLS: 'TCP',
  UDP: 'UDP',
};

function fitProtocol(draft: Draft): Draft {
  const protocol = String(draft['protocol']);
  const check = draft['healthCheck'] as Draft | undefined;
  const isEncrypted = ['HTTPS', 'TLS', 'gRPC'].includes(protocol) || draft['protocol'] === undefined;
  const fitted =
    check && FITTING[protocol] ? { ...draft, healthCheck: { ...check, type: FITTING[protocol] } } : draft;
  return isEncrypted ? fitted : without(fitted, 'tls');
}

function fitOperator(draft: Draft): Draft {
  const needsValues = ['In', 'NotIn'].includes(String(draft['operator']));
  return needsValues ? { ...draft, values: ['a'] } : without(draft, 'values');
}

function withPositiveSelector(draft: Draft): Draft {
  const selectors = draft['tagSelectors'] as readonly Draft[] | undefined;
  if (!selectors || selectors.length === 0) return draft;
  return { ...draft, tagSelectors: [{ key: 'web', operator: 'Exists' }, ...selectors.slice(1)] };
}

function withEndpoints(draft: Draft): Draft {
  return { endpoints: [], ...draft };
}

function withoutUdpServices(draft: Draft): Draft {
  const discovery = draft['serviceDiscovery'] as Draft | undefined;
  const services = discovery?.['vipServices'] as readonly Draft[] | undefined;
  if (!services) return draft;
  const harmless = services.map(service => ({ ...service, targetEndpoint: 'no-such-endpoint' }));
  return { ...draft, serviceDiscovery: { ...discovery, vipServices: harmless } };
}

function without(draft: Draft, field: string): Draft {
  return Object.fromEntries(Object.entries(draft).filter(([name]) => name !== field));
}
