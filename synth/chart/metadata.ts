import { stringify } from 'yaml';
import { OAUTH_SECRET } from '../../src/api/names.ts';
import { envoyGatewayValues } from '../charts/envoy-gateway.ts';
import { inlineTemplate } from './templates.ts';
import type { Manifest } from '../install.ts';
import type { ChartSource } from './runs.ts';
import { valuesTable } from './values.ts';

/** What Chart.yaml has about a version. */
export type Release = {
  readonly version: string;
  readonly license: string;
  readonly description: string;
  /** The text of CHANGELOG.md. */
  readonly changelog: string;
  /** The image of mesh pods. */
  readonly meshImage: string;
  /** Objects of our kinds, as examples. */
  readonly examples: readonly Manifest[];
};

/** The text of Chart.yaml, with annotations for Artifact Hub. */
export function chartFile(
  { definitions }: ChartSource,
  { version, license, description, changelog, meshImage, examples }: Release,
): string {
  const images = [
    { name: 'mesh-gateway', image: `mesh-gateway:${version}` },
    { name: 'meshd', image: meshImage },
  ];
  return stringify(
    {
      apiVersion: 'v2',
      name: 'mesh-gateway',
      type: 'application',
      description,
      version,
      appVersion: version,
      kubeVersion: '>=1.31.0-0',
      keywords: ['gateway-api', 'envoy-gateway', 'envoy', 'tailnet', 'mesh'],
      annotations: {
        'artifacthub.io/changes': stringify(changesOf(version, changelog)),
        'artifacthub.io/crds': stringify(definitions.map(kindOf), { lineWidth: 0 }),
        'artifacthub.io/crdsExamples': stringify(examples),
        'artifacthub.io/images': stringify(images),
        'artifacthub.io/license': license,
        'artifacthub.io/operator': 'true',
      },
    },
    { lineWidth: 0 },
  );
}

/** What Artifact Hub shows about a CRD. */
function kindOf(definition: Manifest) {
  const { names, versions } = (definition as unknown as Definition).spec;
  const [version] = versions;
  return {
    kind: names.kind,
    version: version?.name,
    name: definition.metadata['name'],
    displayName: names.kind,
    description: version?.schema.openAPIV3Schema.description,
  };
}

type Definition = {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: { readonly description?: string } };
    }[];
  };
};

/** The first paragraph about a version, which sums it up; without links, and what is elsewhere. */
function changesOf(version: string, changelog: string): readonly string[] {
  const section = changelog.split(/^## /m).find(text => text.startsWith(version));
  const paragraph = section?.split('\n\n')[1];
  if (paragraph === undefined) throw new Error(`CHANGELOG.md has no paragraph about ${version}`);
  const text = paragraph.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll(/\s+/g, ' ');
  const sentences = text.split(/(?<=\.) /).map(sentence => sentence.trim());
  return sentences.filter(sentence => !sentence.includes('README.md'));
}

const ENVOY_GATEWAY_CHART = 'oci://docker.io/envoyproxy/gateway-helm';

/** The text of NOTES.txt: the next commands. */
export function notesFile(source: ChartSource): string {
  const values = inlineTemplate(source, envoyGatewayValues).trimEnd();
  return `mesh-gateway {{ .Chart.AppVersion }} is installed in the namespace {{ .Release.Namespace }}. The next three commands:

1. Wait until it is ready:

kubectl -n {{ .Release.Namespace }} wait --for=condition=Available deployment --all --timeout=5m

2. Configure Envoy Gateway. If it is installed already, name its release, and restart it afterwards
   (kubectl -n {{ .Values.envoyGateway.namespace }} rollout restart deployment/envoy-gateway):

helm upgrade --install eg ${ENVOY_GATEWAY_CHART} --version v1.9.1 \\
  --namespace {{ .Values.envoyGateway.namespace }} --create-namespace --values - <<END
${values}
END

3. Create the Secret of an OAuth client, with which a MeshTailnet joins its tailnet:

kubectl -n {{ .Release.Namespace }} create secret generic ${OAUTH_SECRET} \\
  --from-literal=client-id="$CLIENT_ID" --from-literal=client-secret="$CLIENT_SECRET"

For what is not a value of this chart, \`mesh-gateway synth\` writes all manifests as files. It also finds
errors that values.schema.json cannot find, such as a request of memory above its limit.
`;
}

/** The text of README.md. */
export function readmeFile({ schema }: ChartSource, { description }: Release): string {
  return `# mesh-gateway

${description}.

\`\`\`sh
kubectl create namespace envoy-gateway-system --dry-run=client --output=yaml | kubectl apply --server-side -f -
helm install mesh-gateway dist/chart --namespace mesh-system --create-namespace
\`\`\`

There is no image in a registry yet: build it in a checkout of the repository (\`docker build -t mesh-gateway:VERSION .\`), and load it
into your nodes, or push it and set \`image.repository\`. Helm prints the next three commands; one of them configures Envoy Gateway,
which must be 1.9 or newer. \`helm -n mesh-system get notes mesh-gateway\` prints them again.

The namespaces of Envoys (\`envoyGateway.proxyNamespaces\`) must exist: the operator gets a Role in each. The namespace of the
release is that of the operator, the extension server and the mesh pods: use one that mesh-gateway alone uses. Its pods meet the
restricted level of Pod Security; to enforce it, label the namespace:

\`\`\`sh
kubectl label namespace mesh-system pod-security.kubernetes.io/enforce=restricted
\`\`\`

\`helm uninstall\` keeps the CRDs, and with them all objects of their kinds. With \`crds.keep=false\` it deletes both.

## Values

${valuesTable(schema)}

What is not a value can be changed in manifests: \`mesh-gateway synth\` writes them from a configuration with the same fields. It
also finds errors that \`values.schema.json\` cannot find, such as a request of memory above its limit.
`;
}
