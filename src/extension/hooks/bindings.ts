import { GROUP } from '../../api/generated/kinds.ts';
import type { Ref } from '../../api/key.ts';
import { isRecord } from '../../api/rule-functions.ts';
import {
  ExtensionResourceSchema,
  PostTranslateExtensionContextSchema as ContextSchema,
  PostTranslateModifyRequestSchema as RequestSchema,
} from '../proto/envoygateway/extension_pb.ts';
import { bytesOf, valuesOf } from '../wire.ts';

/** What a translation was asked for: the revision of a Gateway that whoever asked had seen. */
export type Binding = { readonly gateway: Ref<'Gateway'>; readonly revision: string };

/** A MeshBinding is far smaller; what is bigger is not read, so that a call costs no more than it may. */
const MOST_BYTES = 64 * 1024;
const MOST_OBJECTS = 64;

/** The bindings that Envoy Gateway sends along with a translation; whatever else it sends along is passed over. */
export function bindingsIn(request: Uint8Array): readonly Binding[] {
  return valuesOf(request, RequestSchema.field.postTranslateContext.number, MOST_OBJECTS)
    .flatMap(context => valuesOf(context, ContextSchema.field.extensionResources.number, MOST_OBJECTS))
    .slice(0, MOST_OBJECTS)
    .flatMap(resource => {
      const json = bytesOf(resource, ExtensionResourceSchema.field.unstructuredBytes.number);
      return json && json.length <= MOST_BYTES ? bindingsOf(objectIn(json)) : [];
    });
}

function objectIn(json: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
  } catch {
    return undefined;
  }
}

function bindingsOf(object: unknown): readonly Binding[] {
  if (!isRecord(object) || object['kind'] !== 'MeshBinding' || !isOfGroup(object['apiVersion'])) return [];
  const { metadata, spec } = object;
  if (!isRecord(metadata) || !isRecord(spec)) return [];
  const { namespace } = metadata;
  const { revision, targetRefs } = spec;
  if (typeof namespace !== 'string' || typeof revision !== 'string' || !Array.isArray(targetRefs)) return [];
  return (targetRefs as readonly unknown[]).flatMap((target): readonly Binding[] => {
    const name = isRecord(target) ? target['name'] : undefined;
    return typeof name === 'string' ? [{ gateway: { kind: 'Gateway', namespace, name }, revision }] : [];
  });
}

function isOfGroup(apiVersion: unknown): boolean {
  return typeof apiVersion === 'string' && apiVersion.startsWith(`${GROUP}/`);
}
