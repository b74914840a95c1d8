import { GROUP } from '../../api/generated/kinds.ts';
import { isRecord, jsonObjectIn } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import type { Ref } from '../../api/key.ts';
import {
  ExtensionResourceSchema,
  PostTranslateExtensionContextSchema as ContextSchema,
  PostTranslateModifyRequestSchema as RequestSchema,
} from '../proto/envoygateway/extension_pb.ts';
import { bytesOf, valuesOf } from '../wire.ts';

/** The revision of a Gateway in its MeshBinding: the operator had it when it triggered the translation. */
export type Binding = { readonly gateway: Ref<'Gateway'>; readonly revision: string };

/** Max MeshBindings of a request: Gateways whose MeshBinding is not read have default settings. */
export const MAX_BINDINGS = 1024;

/** Larger objects are ignored; a MeshBinding with the most settings has 331 KB. */
const MAX_OBJECT_BYTES = 512 * 1024;

/** MeshBindings whose namespace, name and revision together are longer are ignored, too. */
const MAX_BINDING_LENGTH = 1024;

/** The MeshBindings in the context of a request. */
export function bindingsIn(request: Uint8Array): readonly Binding[] {
  return valuesOf(request, RequestSchema.field.postTranslateContext.number, MAX_BINDINGS)
    .flatMap(context => valuesOf(context, ContextSchema.field.extensionResources.number, MAX_BINDINGS))
    .slice(0, MAX_BINDINGS)
    .flatMap(resource => {
      const json = bytesOf(resource, ExtensionResourceSchema.field.unstructuredBytes.number);
      if (!json || json.length > MAX_OBJECT_BYTES) return [];
      return bindingOf(jsonObjectIn(Buffer.from(json.buffer, json.byteOffset, json.length).toString())) ?? [];
    });
}

/** A MeshBinding has the name of its Gateway. */
function bindingOf(object: Fields | undefined): Binding | undefined {
  if (object?.['kind'] !== 'MeshBinding') return undefined;
  const { apiVersion, metadata, spec } = object;
  if (typeof apiVersion !== 'string' || !apiVersion.startsWith(`${GROUP}/`)) return undefined;
  if (!isRecord(metadata) || !isRecord(spec)) return undefined;
  const { namespace, name } = metadata;
  const { revision } = spec;
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof revision !== 'string')
    return undefined;
  if (namespace.length + name.length + revision.length > MAX_BINDING_LENGTH) return undefined;
  return { gateway: { kind: 'Gateway', namespace, name }, revision };
}
