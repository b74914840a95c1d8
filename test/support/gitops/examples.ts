import { readFileSync } from 'node:fs';
import { parseManifests } from '../../../lab/kube/manifests.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';

/** The schemas of the kinds of Argo CD and Flux that the examples use, by apiVersion and kind. */
export const SCHEMAS = 'test/support/gitops/schemas.json';

/** The files of the examples for Argo CD and Flux. */
const GITOPS_FILES = ['examples/gitops/argo-cd/applications.yaml', 'examples/gitops/flux/mesh-gateway.yaml'];

/** The objects in these files. */
export function gitopsObjects(): readonly KubeObject[] {
  return GITOPS_FILES.flatMap(file => parseManifests(readFileSync(file, 'utf8'), file));
}
