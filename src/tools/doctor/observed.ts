import { isRecord } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import type { Condition } from '../../api/generated/types.ts';
import { titleOfSubject } from '../../api/problem.ts';
import type { Subject } from '../../api/problem.ts';
import type { Reason, ReasonAt } from '../../api/reasons.ts';
import type { Declarations } from '../check/objects.ts';
import type { AccessReading, Account } from './access.ts';
import type { ReadFront } from './fronts.ts';

/** A line of the report. */
export type Line = {
  /** Such as hook; the same for each object that it is about. */
  readonly check: string;
  /** A warning is about what works, and may be wanted as it is. */
  readonly is: 'ok' | 'warning' | 'failed' | 'not checked';
  /** What was found, or why it was not checked. */
  readonly text: string;
  /** To copy, where the text itself is not enough. */
  readonly fix?: string;
  /** It is checked once a process has seen the object. */
  readonly isPending?: true;
  /** Why it failed or warns, for machines: that of a condition or of `check`, else of the check itself. */
  readonly reason?: Reason;
  /** The object that the reason is about. */
  readonly about?: Subject;
};

/** The reasons of checks that read no condition. */
const REASONS: Readonly<Record<string, ReasonAt<'check of doctor'>>> = {
  kubernetes: 'KubernetesTooOld',
  crds: 'DefinitionsDiffer',
  'gateway-api': 'GatewayAPIMissing',
  'rbac-operator': 'RightsMissing',
  'rbac-extension-server': 'RightsMissing',
  'rbac-envoy-gateway': 'RightsMissing',
  operator: 'NotAvailable',
  'extension-server': 'NotAvailable',
  images: 'ImagePull',
  pods: 'PodFailing',
  quotas: 'PodsRefused',
  leader: 'NoLeader',
  clocks: 'ClockSkew',
  dns: 'DNSFailing',
  'port-53': 'ConnectionForbidden',
  'port-1055': 'ConnectionForbidden',
  'port-5005': 'ConnectionForbidden',
  'port-9002': 'ConnectionForbidden',
  'envoy-gateway': 'EnvoyGatewayUnavailable',
  hook: 'HookMissing',
  'message-limit': 'MessageLimitTooLow',
  restarted: 'RestartNeeded',
  translations: 'NotTranslated',
  cas: 'CertificateExpired',
  listeners: 'ListenerRefused',
  connect: 'NotConnected',
  tailnet: 'TailnetNotFound',
  refusals: 'ConnectionsRefused',
};

function reasonOf(check: string): Pick<Line, 'reason'> {
  const reason = REASONS[check];
  return reason === undefined ? {} : { reason };
}

/** Objects of a cluster as they are served, or why they could not be read. */
export type Reading =
  | { readonly items: readonly Fields[]; readonly why?: undefined }
  | { readonly items?: undefined; readonly why: string };

/** Where an installation is. */
export type Place = {
  readonly namespace: string;
  readonly envoyGatewayNamespace: string;
};

/** All that the checks read. */
export type Observed = Place & {
  /** By the API server. */
  readonly now: Date;
  /** mesh-gateway's kinds, routes and Gateways. */
  readonly declarations: Declarations;
  /** The version of the API server. */
  readonly kubernetes: Reading;
  /** The CRDs of mesh-gateway's kinds, and that of HTTPRoute. */
  readonly definitions: Reading;
  readonly access: readonly { readonly account: Account; readonly reading: AccessReading }[];
  /** In the namespace of the installation. */
  readonly deployments: Reading;
  readonly statefulSets: Reading;
  readonly pods: Reading;
  readonly quotas: Reading;
  /** Events about pods that could not be created. */
  readonly refusals: Reading;
  /** Of running mesh pods. */
  readonly fronts: readonly ReadFront[];
  readonly lease: Reading;
  /** The ConfigMap with the CA certificates that MeshEndpoints name. */
  readonly trust: Reading;
  /** In the namespace of Envoy Gateway. */
  readonly envoyGateways: Reading;
  readonly envoyGatewayPods: Reading;
  readonly envoyGatewayConfig: Reading;
  /** The pods of Envoys in all namespaces. */
  readonly envoys: Reading;
  readonly policies: Reading;
  /** Of the cluster's DNS. */
  readonly dnsPods: Reading;
  readonly dnsConfig: Reading;
};

/** A check that found nothing wrong. */
export function ok(check: string, text: string): Line {
  return { check, is: 'ok', text };
}

/** A check that found what is wrong. */
export function failed(check: string, text: string, fix?: string): Line {
  return { check, is: 'failed', text, ...reasonOf(check), ...(fix === undefined ? {} : { fix }) };
}

/** A check that failed for the reason of a condition. */
export function failedBy(
  check: string,
  about: Subject,
  { reason, message }: Pick<Condition, 'reason' | 'message'>,
  fix?: string,
): Line {
  const line = failed(check, `${titleOfSubject(about)}: ${reason}: ${message}`, fix);
  return { ...line, reason: reason as Reason, about };
}

/** A check that found what may be wrong; it does not fail. */
export function warning(check: string, text: string, fix: string): Line {
  return { check, is: 'warning', text, ...reasonOf(check), fix };
}

/** A check that could not be made. */
export function notChecked(check: string, text: string): Line {
  return { check, is: 'not checked', text };
}

/** A check that can be made in a while. */
export function pending(check: string, text: string): Line {
  return { ...notChecked(check, text), isPending: true };
}

/** The value at a path of fields. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value);
}

/** The text at a path of fields; empty where there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The number at a path of fields; 0 where there is none. */
export function numberAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** The objects in a list at a path of fields. */
export function listAt(value: unknown, ...path: readonly string[]): readonly Fields[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter(isRecord) : [];
}

/** The texts in a list at a path of fields. */
export function textsAt(value: unknown, ...path: readonly string[]): readonly string[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter(item => typeof item === 'string') : [];
}

/** The name of an object, with its namespace where it has one. */
export function nameOf(object: Fields): string {
  const namespace = textAt(object, 'metadata', 'namespace');
  const name = textAt(object, 'metadata', 'name');
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** Labels or annotations, or other texts by name. */
export function mapAt(value: unknown, ...path: readonly string[]): Readonly<Record<string, string>> {
  const found = at(value, ...path);
  if (!isRecord(found)) return {};
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** Whether a pod is ready. */
export function isReady(pod: Fields): boolean {
  return listAt(pod, 'status', 'conditions').some(
    ({ type, status }) => type === 'Ready' && status === 'True',
  );
}

/** Whether an object has these labels. */
export function hasLabels(object: Fields, wanted: Readonly<Record<string, string>>): boolean {
  const labels = mapAt(object, 'metadata', 'labels');
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

/** The object of a name. */
export function namedIn(items: readonly Fields[], name: string): Fields | undefined {
  return items.find(item => textAt(item, 'metadata', 'name') === name);
}
