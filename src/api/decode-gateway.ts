import type { Header } from './decode-route.ts';
import type { Gateway, GatewayClass, Listener, ReferenceGrant } from './gateway-api.ts';
import { field, items, withFields } from './place.ts';
import type { Place } from './place.ts';
import { forms, optionalText, port, present, text } from './scalars.ts';

/** A Gateway, with what of its listeners is read. */
export function decodeGateway(header: Header<'Gateway'>, object: Place): Gateway {
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    gatewayClassName: text(field(spec, 'gatewayClassName'), forms.filled),
    listeners: items(field(spec, 'listeners')).map(decodeListener),
  };
}

function decodeListener(place: Place): Listener {
  const listener = withFields(place);
  return {
    name: text(field(listener, 'name'), forms.domain),
    port: port(field(listener, 'port')),
    protocol: text(field(listener, 'protocol'), forms.filled),
    ...present({ hostname: optionalText(field(listener, 'hostname'), forms.hostname) }),
  };
}

/** A class of Gateways. */
export function decodeGatewayClass(header: Header<'GatewayClass'>, object: Place): GatewayClass {
  const spec = withFields(field(object, 'spec'));
  return { ...header, controllerName: text(field(spec, 'controllerName'), forms.filled) };
}

/** Who may refer to objects of a namespace from another. */
export function decodeReferenceGrant(header: Header<'ReferenceGrant'>, object: Place): ReferenceGrant {
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    from: items(field(spec, 'from')).map(place => {
      const from = withFields(place);
      return {
        group: text(field(from, 'group'), forms.group),
        kind: text(field(from, 'kind'), forms.kind),
        namespace: text(field(from, 'namespace'), forms.label),
      };
    }),
    to: items(field(spec, 'to')).map(place => {
      const to = withFields(place);
      return {
        group: text(field(to, 'group'), forms.group),
        kind: text(field(to, 'kind'), forms.kind),
        ...present({ name: optionalText(field(to, 'name'), forms.filled) }),
      };
    }),
  };
}
