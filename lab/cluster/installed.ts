import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/object.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { NAMESPACE } from '../../src/api/names.ts';

/** The label of all objects of the committed manifests. */
const MANAGED = 'app.kubernetes.io/managed-by=mesh-gateway';

type List = { readonly items?: readonly Pick<KubeObject, 'metadata'>[] };

/** What a cluster has of an installation and its users, by kind and name. Kinds without objects do not count: tests leave them. */
export async function installationIn(request: KubeClient['request']): Promise<readonly string[]> {
  const namespace = await request('GET', `/api/v1/namespaces/${NAMESPACE}`);
  const installed = `labelSelector=${encodeURIComponent(MANAGED)}`;
  const named = async (kind: string, path: string) => {
    const { status, body } = await request('GET', path);
    if (status !== 200 && status !== 404) throw new Error(`GET ${path} was answered with ${status}`);
    return ((body as List).items ?? []).map(({ metadata }) => nameOf(kind, metadata));
  };
  const found = [
    ...(namespace.status === 200 ? [`Namespace ${NAMESPACE}`] : []),
    ...(await named('Deployment', `/apis/apps/v1/deployments?${installed}`)),
  ];
  for (const { kind, name } of await kindsOf(request))
    found.push(...(await named(kind, `/apis/${API_VERSION}/${name}`)));
  return found;
}

type Kind = { readonly kind: string; readonly name: string };

async function kindsOf(request: KubeClient['request']): Promise<readonly Kind[]> {
  const { status, body } = await request('GET', `/apis/${API_VERSION}`);
  if (status === 404) return [];
  if (status !== 200) throw new Error(`the kinds of ${GROUP} were not listed: ${status}`);
  const { resources } = body as { readonly resources: readonly Kind[] };
  return resources.filter(({ name }) => !name.includes('/'));
}

function nameOf(kind: string, { namespace, name = '' }: KubeObject['metadata']): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

const MOST_NAMED = 5;

/** Why `user` may not use a cluster that has these objects; `former` used it and did not end by itself. */
export function refusalOf(
  user: string,
  found: readonly string[],
  former: string | undefined,
): string | undefined {
  if (found.length === 0) return undefined;
  const more = found.length > MOST_NAMED ? ` and ${found.length - MOST_NAMED} more` : '';
  const objects = `${found.slice(0, MOST_NAMED).join(', ')}${more}`;
  const end = 'npm run cluster -- down';
  return former === undefined
    ? `the cluster has an installation of mesh-gateway, which ${user} would replace: ${objects}. ` +
        `Remove it as docs/install.md describes, or end the cluster: ${end}`
    : `${former} was aborted and left this in the cluster: ${objects}. End the cluster, then try again: ${end}`;
}

/** The name of who uses a cluster, in a file of its folder until that has ended. */
export function userFile(folder: string) {
  const file = join(folder, 'user');
  return {
    read: (): string | undefined => (existsSync(file) ? readFileSync(file, 'utf8') : undefined),
    write: (user: string): void => writeFileSync(file, user),
    remove: (): void => rmSync(file, { force: true }),
  };
}
