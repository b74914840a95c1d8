import { parseArgs } from 'node:util';
import type { OperatorAccess } from '../../api/access.ts';
import { durationMs } from '../../api/duration.ts';
import { ENVOY_POD, NAMESPACE } from '../../api/names.ts';
import { systemClock } from '../../runtime/clock.ts';
import { withCluster } from '../check/cluster.ts';
import { outputJson } from '../json.ts';
import { plainText } from '../plain-text.ts';
import { COLOR_HELP, fitting, lookOf, painted, PLAIN } from '../terminal.ts';
import type { Look } from '../terminal.ts';
import { observe } from './cluster.ts';
import { checkConnections } from './connect.ts';
import { diagnose } from './diagnose.ts';
import type { Line } from './observed.ts';

/** What `mesh-gateway help doctor` prints. */
export const DOCTOR_HELP = `mesh-gateway doctor [options]

Checks an installation and what it depends on: CRDs, RBAC of the accounts, pods
and images, quotas, clocks, DNS, NetworkPolicies, Envoy Gateway with its hook,
tailnets with credentials, scopes, tags, approvals and keys, CA certificates,
and routes. Each line is ok, failed or a warning with the fix, or not checked
and why. What the operator has found out is read from status. It changes
nothing, and reads no Secret.

  --connect     a MeshEndpoints, as NAME or NAMESPACE/NAME: also connect to each
                of its endpoints from each mesh pod, with tailscale nc in the
                pod and your own rights (pods/exec in the namespace of the
                installation)
  --wait        repeat the checks for up to this time, such as 2m, while one
                fails or waits for the operator
  --namespace   of the installation (default: ${NAMESPACE})
  --envoy-gateway-namespace
                of Envoy Gateway (default: ${ENVOY_POD.namespace})
  --output      text, which is the default, or json
${COLOR_HELP}
  --kubeconfig, --context
                the cluster, as in mesh-gateway check

Examples:
  mesh-gateway doctor
  mesh-gateway doctor --wait 2m
  mesh-gateway doctor --connect default/web
  kubectl mesh doctor --output json

Exit status: 0 nothing has failed, 1 something has, 2 wrong usage, or the
cluster does not answer.
`;

/** What doctor is given by the command line's root. */
export type DoctorDeps = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The rights of the operator. */
  readonly operatorAccess: OperatorAccess;
};

const REPEAT_MS = 2000;

/** Runs `mesh-gateway doctor`; returns the exit code. */
export async function runDoctor(args: readonly string[], deps: DoctorDeps): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      connect: { type: 'string' },
      wait: { type: 'string', default: '0s' },
      namespace: { type: 'string', default: NAMESPACE },
      'envoy-gateway-namespace': { type: 'string', default: ENVOY_POD.namespace },
      output: { type: 'string', default: 'text' },
      color: { type: 'string', default: 'auto' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
    },
  });
  const waitMs = durationMs(values.wait);
  if (waitMs === undefined || waitMs < 0)
    throw new Error(`doctor: --wait ${JSON.stringify(values.wait)} is not a duration, such as 2m`);
  const { connect, output, kubeconfig, context, namespace } = values;
  if (output !== 'text' && output !== 'json')
    throw new Error(`doctor: --output ${JSON.stringify(output)} is neither text nor json`);
  const { environment, operatorAccess } = deps;
  const look = lookOf('doctor', values.color, environment);
  const lines = await withCluster({ kubeconfig, context, environment }, async (transport, _, runInPod) => {
    const until = systemClock.now() + waitMs;
    for (;;) {
      const observed = await observe({
        transport,
        namespace,
        operatorAccess,
        envoyGatewayNamespace: values['envoy-gateway-namespace'],
        onPart: part => show(`reading ${part} ...`),
      });
      show(connect === undefined ? '' : `connecting to ${connect} ...`);
      const connections = connect === undefined ? [] : await checkConnections(connect, observed, runInPod);
      show('');
      const found = [...diagnose(observed), ...connections];
      const open = found.filter(({ is, isPending }) => is === 'failed' || isPending === true).length;
      const leftMs = until - systemClock.now();
      if (open === 0 || leftMs <= 0) return found;
      show(`${open} of ${found.length} checks are not ok yet; ${Math.ceil(leftMs / 1000)} s left`);
      await new Promise<void>(resolve => {
        systemClock.after(Math.min(REPEAT_MS, leftMs), resolve);
      });
    }
  });
  console.log(output === 'json' ? outputJson({ checks: lines }) : formatLines(lines, look));
  console.error(summaryOf(lines));
  return lines.some(({ is }) => is === 'failed') ? 1 : 0;
}

/** Progress, on a terminal only. */
function show(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

const [MARK_WIDTH, CHECK_WIDTH] = [13, 23];

/** A line for each check, with its fix below. */
export function formatLines(lines: readonly Line[], look: Look = PLAIN): string {
  return lines
    .flatMap(({ check, is, text, fix }) => {
      const head = `${painted(is.padEnd(MARK_WIDTH), STYLES[is], look)}${check.padEnd(CHECK_WIDTH)}`;
      const [first = '', ...rest] = plainText(text).trimEnd().split('\n');
      const fixes = fix === undefined ? [] : plainText(fix).split('\n');
      return [
        ...fitting(`${head}${first}`, MARK_WIDTH + CHECK_WIDTH, look),
        ...rest.map(line => `${INDENT}${line}`),
        ...(fix === undefined ? [] : [`${INDENT}${painted('fix:', 'fix', look)}`]),
        // To copy, so in one piece.
        ...fixes.map(line => `${INDENT}  ${line}`),
      ];
    })
    .join('\n');
}

const INDENT = ' '.repeat(MARK_WIDTH);

const STYLES = { ok: 'ok', warning: 'warning', failed: 'error', 'not checked': 'note' } as const;

function summaryOf(lines: readonly Line[]): string {
  const of = (wanted: Line['is']) => lines.filter(({ is }) => is === wanted).length;
  const warnings = of('warning') === 0 ? '' : `, ${of('warning')} to consider`;
  return `${of('ok')} ok, ${of('failed')} failed, ${of('not checked')} not checked${warnings}`;
}
