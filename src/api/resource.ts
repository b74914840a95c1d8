import type { Backend, EndpointSlice, Service } from './backends.ts';
import type { KindName } from './generated/kinds.ts';
import type { Kinds } from './generated/types.ts';
import type { Gateway, GatewayClass, Namespace, ReferenceGrant, Route } from './gateway-api.ts';
import type { ResourceKind, RouteKind } from './key.ts';

/** What an object of a kind is once it has been read: whole for our own kinds, the fields that we use for others. */
export type ResourceOf<K extends ResourceKind> = K extends KindName
  ? Kinds[K]
  : K extends RouteKind
    ? Route & { readonly kind: K }
    : K extends 'Gateway'
      ? Gateway
      : K extends 'GatewayClass'
        ? GatewayClass
        : K extends 'Namespace'
          ? Namespace
          : K extends 'ReferenceGrant'
            ? ReferenceGrant
            : K extends 'Service'
              ? Service
              : K extends 'EndpointSlice'
                ? EndpointSlice
                : K extends 'Backend'
                  ? Backend
                  : never;

/** Any object that is read. */
export type Resource = { [K in ResourceKind]: ResourceOf<K> }[ResourceKind];
