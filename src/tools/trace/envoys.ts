import type { RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import type { OpenPort } from '../check/cluster.ts';
import type { Fields } from '../../api/json.ts';
import { keyOf } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { Catalog } from '../check/objects.ts';
import type { Declarations } from '../check/objects.ts';
import { trafficIn } from '../check/traffic.ts';
import type { TrafficSettings } from '../check/traffic.ts';
import { gatewayOf, mergedClassOf, readEnvoys, servingIn } from '../envoy/admin.ts';
import type { ReadEnvoy } from '../envoy/admin.ts';
import { refusedText } from '../doctor/fronts.ts';
import type { ReadFront } from '../doctor/fronts.ts';
import { listAt, textAt } from '../doctor/observed.ts';
import type { Reading } from '../doctor/observed.ts';
import { compareRule } from '../envoy/compare.ts';
import type { Comparison } from '../envoy/compare.ts';
import { brokenBy } from './step.ts';
import type { Step } from './step.ts';
import type { TracedWay } from './trace.ts';

/** The ways with what the Envoys of each Gateway have for the rule. */
export async function withEnvoys(
  ways: readonly TracedWay[],
  { declarations, settings }: { readonly declarations: Declarations; readonly settings: TrafficSettings },
  { items, why }: Reading,
  fronts: { readonly read: readonly ReadFront[]; readonly why?: string | undefined },
  openPort: OpenPort,
): Promise<readonly TracedWay[]> {
  const servingOf = servingIn(declarations);
  const trafficInClass = trafficOfMerged(declarations, settings);
  const all: TracedWay[] = [];
  for (const way of ways) all.push(await withEnvoysOf(way));
  return all;

  async function withEnvoysOf(way: TracedWay): Promise<TracedWay> {
    if (!way.traffic) return way;
    if (!items) return { ...way, steps: [...way.steps, unknown(why)] };
    const pods = items.filter(pod => servingOf(way.gateway).includes(gatewayOf(pod)));
    const envoys = await readEnvoys(pods, openPort, way.traffic.rule.cluster.text);
    const [mergedClass] = pods.flatMap(pod => mergedClassOf(gatewayOf(pod)) ?? []);
    const traffic = mergedClass === undefined ? way.traffic : trafficInClass(way.traffic, mergedClass);
    const unread =
      fronts.why === undefined ? [] : [{ is: 'unknown', name: 'mesh pod', text: fronts.why } as const];
    const steps = [...way.steps, ...refusalsOf(way.traffic, pods, fronts.read), ...unread];
    return { ...way, steps: stepsWithEnvoys(steps, traffic, envoys) };
  }
}

/** What the mesh pods of a rule have refused, which is its end where they refuse its Envoys still. */
function refusalsOf(
  { rule }: RuleTraffic,
  envoys: readonly Fields[],
  fronts: readonly ReadFront[],
): readonly Step[] {
  const tailnets = new Set(
    rule.backends.flatMap(({ endpoints }) => endpoints.map(({ tailnet }) => tailnet.metadata.name)),
  );
  const addresses = envoys.flatMap(pod => listAt(pod, 'status', 'podIPs').map(each => textAt(each, 'ip')));
  const name = 'mesh pod';
  return fronts.flatMap((front): readonly Step[] => {
    if (!tailnets.has(front.tailnet)) return [];
    if ('why' in front) return [{ is: 'unknown', name, text: `${front.pod}: ${front.why}` }];
    const refused = front.callers.filter(address => addresses.includes(address));
    if (refused.length > 0) {
      const text = `${front.pod} refuses connections of the Envoy at ${refused.join(', ')}, which is not among its callers`;
      const fix = `see the condition FrontReady of MeshTailnet ${front.tailnet}`;
      return [brokenBy('envoy', { reason: 'CallerRefused', text, fix })];
    }
    if (front.refused.size === 0) return [];
    const text = `${front.pod} has refused ${refusedText(front.refused)} since it started`;
    return [{ is: 'ok', name, text }];
  });
}

/** What the Envoy of a GatewayClass gets for a rule, where Envoy Gateway merges its Gateways. */
function trafficOfMerged(
  declarations: Declarations,
  settings: TrafficSettings,
): (traffic: RuleTraffic, name: string) => RuleTraffic {
  const catalog = new Catalog(declarations);
  const trafficOf = trafficIn(catalog, settings).of;
  return (traffic, name) => {
    const { cluster } = traffic.rule;
    const route = catalog.get(keyOf(cluster))?.resource as Route | undefined;
    const rules = route ? trafficOf(route, name).flatMap(each => each.rules) : [];
    return rules.find(({ rule }) => rule.cluster.text === cluster.text) ?? traffic;
  };
}

/** Steps with what Envoys have for the rule: differences come first, the rest last; Envoys that are alike share lines. */
export function stepsWithEnvoys(
  steps: readonly Step[],
  traffic: RuleTraffic,
  envoys: readonly ReadEnvoy[],
): readonly Step[] {
  if (envoys.length === 0) return [...steps, unknown(NO_ENVOY)];
  const alike = new Map<string, { readonly comparison: Comparison; readonly pods: string[] }>();
  for (const envoy of envoys) {
    if ('why' in envoy) continue;
    const comparison = compareRule(traffic, envoy.state);
    const id = JSON.stringify(comparison);
    const found = alike.get(id);
    if (found) found.pods.push(envoy.pod);
    else alike.set(id, { comparison, pods: [envoy.pod] });
  }
  const ofEnvoys = [...alike.values()].map(({ comparison, pods }) => ({
    ...comparison,
    names: namesOf(pods),
  }));
  const different = ofEnvoys.flatMap(({ differences, names }) =>
    differences.map(({ text, fix }) =>
      brokenBy('envoy', { reason: 'EnvoyDiffers', text: `${names} ${text}`, fix }),
    ),
  );
  const present = ofEnvoys.flatMap(({ lines, names }) =>
    lines.map((text): Step => ({ is: 'ok', name: 'envoy', text: `${names} ${text}` })),
  );
  const unread = envoys.flatMap(envoy => ('why' in envoy ? [unknown(`${envoy.pod}: ${envoy.why}`)] : []));
  return [...different, ...steps, ...present, ...unread];
}

const NO_ENVOY =
  'no running pod has the labels of an Envoy of this Gateway or its GatewayClass: see mesh-gateway doctor';

function unknown(text: string): Step {
  return { is: 'unknown', name: 'envoy', text };
}

function namesOf([first = '', ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}
