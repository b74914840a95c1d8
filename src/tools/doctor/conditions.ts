import { findCondition } from '../../api/conditions.ts';
import { API_VERSION, GROUP } from '../../api/generated/kinds.ts';
import type { Condition, Kinds } from '../../api/generated/types.ts';
import { placeOf } from '../../api/objects/oldest.ts';
import { titleOfSubject } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { OAUTH_SECRET } from '../../api/names.ts';
import { failed, failedBy, listAt, nameOf, notChecked, ok, pending, textAt, warning } from './observed.ts';
import type { Line, Observed } from './observed.ts';
import { isLed } from './workloads.ts';

type Objects = Observed['declarations']['objects'];

/** What the operator has found about tailnets and endpoints, and Envoy Gateway about Gateways: read from status. */
export function checkConditions(observed: Observed): readonly Line[] {
  return [...tailnetLines(observed), ...endpointsLines(observed), ...gatewayLines(observed)];
}

/** A check of a tailnet, the reasons that fail it, and what is right where the condition has none of them. */
type ConditionCheck = {
  readonly check: string;
  readonly type: 'Authenticated' | 'PoolReady';
  readonly reasons: readonly string[];
  readonly ok: string;
};

/** NotAuthenticated of a pool whose credentials list devices: they may not create join keys. */
const CHECKS: readonly ConditionCheck[] = [
  {
    check: 'control-api',
    type: 'Authenticated',
    ok: 'the control API answers',
    reasons: ['ControlURLMissing', 'Unreachable', 'Throttled'],
  },
  {
    check: 'secret',
    type: 'Authenticated',
    ok: 'the operator has credentials',
    reasons: ['SecretNotFound', 'SecretKeyMissing'],
  },
  {
    check: 'credentials',
    type: 'Authenticated',
    ok: 'the control API accepts the credentials',
    reasons: ['CredentialsInvalid'],
  },
  {
    check: 'scopes',
    type: 'Authenticated',
    ok: 'the credentials may list devices',
    reasons: ['ScopeMissing'],
  },
  {
    check: 'tailnet',
    type: 'Authenticated',
    ok: 'the credentials are of this tailnet',
    reasons: ['TailnetMismatch', 'Conflict'],
  },
];

const POOL_CHECKS: readonly ConditionCheck[] = [
  {
    check: 'scopes-of-pool',
    type: 'PoolReady',
    ok: 'the credentials may create join keys',
    reasons: ['NotAuthenticated'],
  },
  {
    check: 'tags',
    type: 'PoolReady',
    ok: 'the policy of the tailnet has the tags of mesh pods',
    reasons: ['KeyRejected'],
  },
  {
    // The control API returns no limits: only a refusal shows one.
    check: 'tailnet-limits',
    type: 'PoolReady',
    ok: 'no limit of the tailnet keeps mesh pods out; how many devices and keys are left is not known, because the control API returns no limits',
    reasons: ['LimitReached'],
  },
  {
    check: 'approvals',
    type: 'PoolReady',
    ok: 'no mesh pod waits for approval',
    reasons: ['AwaitingApproval'],
  },
  {
    check: 'key-expiry',
    type: 'PoolReady',
    ok: 'no key of a mesh pod has expired',
    reasons: ['KeyExpired'],
  },
  {
    check: 'pool',
    type: 'PoolReady',
    ok: 'all mesh pods carry traffic',
    reasons: [
      ...['DeviceRemoved', 'NotScheduled', 'ImagePull', 'CrashLoop', 'NoAddresses', 'Starting'],
      ...['RelayUnreachable', 'HealthWarnings'],
    ],
  },
];

function tailnetLines(observed: Observed): readonly Line[] {
  const { objects, complete } = observed.declarations;
  const tailnets = resourcesOf(objects, 'MeshTailnet');
  if (tailnets.length > 0) {
    const lines = tailnets.flatMap(tailnet => linesOfTailnet(tailnet, observed));
    return isLed(observed) === false ? lines : [...lines, ...policyLines(tailnets), ...frontLines(tailnets)];
  }
  return complete && !complete.has('MeshTailnet')
    ? [notChecked('tailnet', 'meshtailnets cannot be read')]
    : [failed('tailnet', 'there is no MeshTailnet', MANIFEST)];
}

const MANIFEST = `apiVersion: ${API_VERSION}
kind: MeshTailnet
metadata:
  name: example
spec:
  tailnet: example.ts.net  # the domain of your tailnet
  controlURL: https://api.tailscale.com`;

/** The valid objects of a kind. */
export function resourcesOf<K extends keyof Kinds>(objects: Objects, kind: K): readonly Kinds[K][] {
  return objects.flatMap(({ resource }) =>
    resource?.kind === kind ? [resource as unknown as Kinds[K]] : [],
  );
}

function linesOfTailnet(tailnet: Kinds['MeshTailnet'], observed: Observed): readonly Line[] {
  const { metadata, spec, status } = tailnet;
  const title = `MeshTailnet ${metadata.name}`;
  if (isLed(observed) === false) return [notChecked('tailnet', `${title}: ${NOT_LED}`)];
  const authenticated = findCondition(status?.conditions, 'Authenticated');
  const isAlone = spec.pool.mode === 'External' && authenticated?.reason === 'ControlURLMissing';
  const ofProxies = POOL_CHECKS.filter(({ check }) => check === 'pool');
  const ofPool = spec.pool.mode === 'Managed' ? POOL_CHECKS : ofProxies;
  return [...(isAlone ? [] : CHECKS), ...ofPool].map(each => {
    const condition = findCondition(status?.conditions, each.type);
    const why = unknownBecause(condition, each.type, metadata.generation);
    if (why !== undefined) return pending(each.check, `${title}: ${why}`);
    return lineOf(each, condition, tailnet, fixOf(condition?.reason, tailnet, observed));
  });
}

/** Whether the cluster enforces NetworkPolicies: each MeshTailnet whose pool the operator runs has the same condition. */
function policyLines(tailnets: readonly Kinds['MeshTailnet'][]): readonly Line[] {
  const check = 'network-policies';
  const managed = tailnets.filter(({ spec }) => spec.pool.mode === 'Managed');
  const conditions = managed.flatMap(({ status }) => findCondition(status?.conditions, ENFORCED) ?? []);
  const worst = ['False', 'Unknown', 'True'].map(status => conditions.find(each => each.status === status));
  const [condition] = worst.filter(each => each !== undefined);
  if (managed.length === 0) return [];
  if (!condition) return [pending(check, `no MeshTailnet has the condition ${ENFORCED} yet`)];
  const { status, reason, message } = condition;
  if (status === 'True') return [ok(check, 'the cluster enforces NetworkPolicies')];
  if (status === 'Unknown') return [notChecked(check, `${reason}: ${message}`)];
  const fix = reason === 'NotInstalled' ? INSTALL_POLICIES : ENFORCE_POLICIES;
  return [{ ...warning(check, `${reason}: ${message}`, fix), reason: reason as Reason }];
}

/** Whom the proxy of mesh pods refuses although it should not; without a line where there is nothing of the kind. */
function frontLines(tailnets: readonly Kinds['MeshTailnet'][]): readonly Line[] {
  return tailnets.flatMap(({ metadata, status }) => {
    const condition = findCondition(status?.conditions, 'FrontReady');
    const about = { kind: 'MeshTailnet', name: metadata.name };
    return condition?.status === 'False' ? [failedBy('front', about, condition)] : [];
  });
}

const ENFORCED = 'NetworkPoliciesEnforced';

const INSTALL_POLICIES =
  'set networkPolicies.enabled: true in the configuration of mesh-gateway synth, and apply the manifests';

const ENFORCE_POLICIES =
  'run a network plugin that enforces NetworkPolicies, such as Calico or Cilium; until then, run no pods that you do not trust';

const NOT_LED = 'its status may be old, because no operator leads';

/** Why a condition does not answer; undefined where it does. */
function unknownBecause(
  condition: Condition | undefined,
  type: string,
  generation: number | undefined,
): string | undefined {
  if (!condition) return `its status has no condition ${type} yet`;
  if ((condition.observedGeneration ?? 0) < (generation ?? 0))
    return 'the operator has not seen its present spec yet';
  return undefined;
}

function lineOf(
  { check, type, reasons, ok: text }: ConditionCheck,
  condition: Condition | undefined,
  { metadata: { name } }: Kinds['MeshTailnet'],
  fix: string | undefined,
): Line {
  const title = `MeshTailnet ${name}`;
  const { reason = '', status } = condition ?? {};
  if (condition && reasons.includes(reason)) {
    const failure = failedBy(check, { kind: 'MeshTailnet', name }, condition, fix);
    return status === 'True' ? { ...failure, is: 'warning' } : failure;
  }
  if (status === 'True') return ok(check, `${title}: ${text}`);
  return notChecked(check, `${title}: not known while ${type} is False, with the reason ${reason}`);
}

/** Commands for what a message cannot have in it. */
function fixOf(
  reason: string | undefined,
  { metadata, spec }: Kinds['MeshTailnet'],
  { namespace }: Observed,
): string | undefined {
  const { secretRef, clientIdKey, clientSecretKey } = spec.oauth;
  const name = secretRef.name === '' ? OAUTH_SECRET : secretRef.name;
  switch (reason) {
    case 'SecretNotFound':
    case 'SecretKeyMissing':
    case 'CredentialsInvalid':
      return `kubectl -n ${namespace} create secret generic ${name} --from-literal=${clientIdKey}="$CLIENT_ID" --from-literal=${clientSecretKey}="$CLIENT_SECRET" --dry-run=client --output yaml | kubectl apply --server-side --force-conflicts -f -`;
    case 'NotScheduled':
    case 'CrashLoop':
      return `kubectl -n ${namespace} describe pods -l ${GROUP}/tailnet=${metadata.name}`;
    default:
      return undefined;
  }
}

/** Reasons of MeshEndpoints that lines about its tailnet have already, or that are no fault. */
const ELSEWHERE: readonly string[] = ['CredentialsInvalid', 'Paused'];

/** The check of each reason of MeshEndpoints; others are about their endpoints. */
const ENDPOINT_CHECKS: Readonly<Record<string, string>> = {
  TailnetNotFound: 'tailnet',
  NamespaceNotAllowed: 'tailnet',
  InvalidReference: 'references',
};

function endpointsLines(observed: Observed): readonly Line[] {
  const { objects, complete } = observed.declarations;
  const check = 'endpoints';
  if (complete && !complete.has('MeshEndpoints')) return [notChecked(check, 'meshendpoints cannot be read')];
  const all = resourcesOf(objects, 'MeshEndpoints');
  if (all.length === 0) return [notChecked(check, 'there are no MeshEndpoints')];
  if (isLed(observed) === false) return [notChecked(check, NOT_LED)];
  const lines = all.flatMap(({ metadata, status }) => {
    const about = { kind: 'MeshEndpoints', namespace: metadata.namespace ?? '', name: metadata.name };
    const ready = findCondition(status?.conditions, 'Ready');
    const why = unknownBecause(ready, 'Ready', metadata.generation);
    if (why !== undefined) return [pending(check, `${titleOfSubject(about)}: ${why}`)];
    if (ready?.status !== 'False' || ELSEWHERE.includes(ready.reason)) return [];
    return [failedBy(ENDPOINT_CHECKS[ready.reason] ?? check, about, ready)];
  });
  const ready = all.filter(({ status }) => findCondition(status?.conditions, 'Ready')?.status === 'True');
  const others = ready.length < all.length ? '; the others are paused, or wait for their tailnet' : '';
  const text = `${ready.length} of ${all.length} MeshEndpoints are ready${others}`;
  return lines.length > 0 ? lines : [ok(check, text)];
}

/** Listeners that Envoy Gateway refuses, of Gateways with routes to MeshEndpoints, for which there are MeshBindings. */
function gatewayLines({ declarations: { objects, complete } }: Observed): readonly Line[] {
  const check = 'listeners';
  if (complete && !(complete.has('Gateway') && complete.has('MeshBinding')))
    return [notChecked(check, 'gateways or meshbindings cannot be read')];
  const bound = new Set(resourcesOf(objects, 'MeshBinding').map(placeOf));
  const gateways = objects.filter(({ fields }) => fields['kind'] === 'Gateway' && bound.has(nameOf(fields)));
  const lines = gateways.flatMap(({ fields }): readonly Line[] => {
    const listeners = listAt(fields, 'status', 'listeners');
    if (listeners.length === 0)
      return [pending(check, `Gateway ${nameOf(fields)}: Envoy Gateway has not written its status yet`)];
    return listeners.flatMap(listener => {
      const [wrong] = listAt(listener, 'conditions').filter(
        ({ type, status }) =>
          (type === 'Conflicted' && status === 'True') ||
          (['Accepted', 'Programmed', 'ResolvedRefs'].includes(String(type)) && status === 'False'),
      );
      if (!wrong) return [];
      const title = `listener ${textAt(listener, 'name')} of Gateway ${nameOf(fields)}`;
      return [failed(check, `${title}: ${textAt(wrong, 'reason')}: ${textAt(wrong, 'message')}`)];
    });
  });
  if (lines.length > 0) return lines;
  return gateways.length === 0
    ? [notChecked(check, 'no Gateway has a route to MeshEndpoints yet')]
    : [
        ok(
          check,
          `Envoy Gateway accepts the listeners of each Gateway with routes to MeshEndpoints (${gateways.length})`,
        ),
      ];
}
