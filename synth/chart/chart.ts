import { parse } from 'yaml';
import type { Files, Manifest } from '../install.ts';
import { readSchema } from './fields.ts';
import { chartFile, notesFile, readmeFile } from './metadata.ts';
import type { Release } from './metadata.ts';
import { withOwnValues } from './own-values.ts';
import { templatesOf } from './templates.ts';
import { valuesFile, valuesSchema } from './values.ts';

/** The files of the Helm chart, made from the schema of the configuration and from runs of synth. */
export function chartFiles(configuration: string, definitions: readonly string[], release: Release): Files {
  const schema = withOwnValues(readSchema(configuration));
  const source = { schema, definitions: definitions.map(text => parse(text) as Manifest) };
  const templates = [...templatesOf(source)].map(([file, text]) => [`templates/${file}`, text] as const);
  return new Map([
    ['Chart.yaml', chartFile(source, release)],
    ['README.md', readmeFile(source, release)],
    ['values.yaml', valuesFile(schema)],
    ['values.schema.json', valuesSchema(schema)],
    ['templates/NOTES.txt', notesFile(source)],
    ['templates/release-namespace.yaml', RELEASE_NAMESPACE],
    ...templates,
  ]);
}

/** The operator may read and write all Secrets of its namespace. */
const RELEASE_NAMESPACE = `{{- $others := list "default" .Values.envoyGateway.namespace .Values.monitoring.namespace }}
{{- if or (has .Release.Namespace $others) (hasPrefix "kube-" .Release.Namespace) }}
{{- fail (printf "the namespace %s is used by others: name one that mesh-gateway alone uses, such as --namespace mesh-system --create-namespace" .Release.Namespace) }}
{{- end }}
`;
