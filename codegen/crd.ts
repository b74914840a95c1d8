import { stringify } from 'yaml';
import type { JsonObject } from './json.ts';
import type { Column, Kind } from './kind.ts';
import { structuralRoot } from './structural.ts';

/** The name of a kind's CustomResourceDefinition. */
export function crdName(kind: Kind): string {
  return `${kind.plural}.${kind.group}`;
}

/** The CustomResourceDefinition of a kind. */
export function crd(kind: Kind): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName(kind) },
    spec: {
      group: kind.group,
      scope: kind.scope,
      names: {
        kind: kind.name,
        listKind: `${kind.name}List`,
        plural: kind.plural,
        singular: kind.singular,
        shortNames: kind.shortNames,
        categories: kind.categories,
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(column),
          schema: { openAPIV3Schema: structuralRoot(kind) },
        },
      ],
    },
  };
}

/** The CustomResourceDefinition as YAML text, quoted for kubectl, which reads YAML 1.1. */
export function crdYaml(kind: Kind): string {
  return stringify(crd(kind), { aliasDuplicateObjects: false, lineWidth: 0, version: '1.1' });
}

function column({ name, type, jsonPath, isWide }: Column): JsonObject {
  return { name, type, jsonPath, ...(isWide && { priority: 1 }) };
}
