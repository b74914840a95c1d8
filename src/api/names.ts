import { GROUP } from './generated/kinds.ts';

/** The namespace of everything that is ours, unless an installation chooses another. */
export const NAMESPACE = 'mesh-system';

/** The names of what runs: Deployments, ServiceAccounts and Services alike. */
export const COMPONENTS = { operator: 'mesh-operator', extensionServer: 'mesh-extension-server' } as const;

/** Where Envoy Gateway and Envoys find the extension server that runs in a namespace. */
export function extensionServerIn(namespace: string): string {
  return `${COMPONENTS.extensionServer}.${namespace}.svc.cluster.local:5005`;
}

/** The label of everything that we make. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'mesh-gateway' } as const;

/** The Secret with the OAuth client of the control API, unless a MeshTailnet names another. */
export const OAUTH_SECRET = 'mesh-oauth';

const END = `.${GROUP}`;

/** An object is shown under its own name and one other by turns: any more of them would be names for the same without an end. */
export const MOST_OTHER_NAMES = 1;

/** The longest name that an API server takes. */
const LONGEST = 253;

/** Another name for an object, by a number above 0, where it is to be taken for a new one; nothing if that is too long. */
export function otherNameOf(declared: string, nth: number): string | undefined {
  const name = nth === 0 ? declared : `${declared}.${nth}${END}`;
  return name.length <= LONGEST ? name : undefined;
}

/** The name that an object was declared with, and the number of its other name; 0 where it has none. */
export function declaredNameOf(name: string): { readonly declared: string; readonly nth: number } {
  if (!name.endsWith(END)) return { declared: name, nth: 0 };
  const [, declared, nth] = /^(.+)\.([1-9]\d{0,8})$/.exec(name.slice(0, -END.length)) ?? [];
  return declared === undefined ? { declared: name, nth: 0 } : { declared, nth: Number(nth) };
}
