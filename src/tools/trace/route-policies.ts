import type { EndpointSelector, Kinds } from '../../api/generated/types.ts';
import { metadataText } from '../../api/objects/metadata-text.ts';
import { refTo } from '../../api/objects/references.ts';
import { titleOfBackend } from '../../traffic/policy/levels.ts';
import { isRequired } from '../../traffic/policy/route-policy.ts';
import type { ResolvedRule } from '../../traffic/resolve-route.ts';
import type { Setting } from './setting.ts';

type MeshRoutePolicy = Kinds['MeshRoutePolicy'];

/** The MeshRoutePolicies of a route: what the one sets that applies to a rule, and which others do not apply. */
export function routePolicySettings(
  rule: ResolvedRule,
  policies: readonly MeshRoutePolicy[],
): readonly Setting[] {
  const { policy } = rule;
  if (!policy) return [];
  const name = `MeshRoutePolicy ${policy.metadata.name}`;
  const others = policies.filter(({ metadata }) => metadata.name !== policy.metadata.name);
  return [
    {
      by: [refTo(policy)],
      isApplied: true,
      text: `${name} sets for the rule: ${settingsOf(policy, rule).join('; ') || 'nothing'}`,
    },
    ...others.map(other => ({
      by: [refTo(other)],
      isApplied: false,
      text: `MeshRoutePolicy ${other.metadata.name} does not apply: ${name} does`,
    })),
  ];
}

function settingsOf({ spec }: MeshRoutePolicy, rule: ResolvedRule): readonly string[] {
  const { endpoints: { require, prefer = [] } = {}, failover: { healthyPercent } = {} } = spec;
  return [
    ...levelsOf(rule),
    ...(require ? [`requires ${textOf(require)}, which ${selectedText(rule)}`] : []),
    ...(prefer.length > 0 ? [`prefers ${prefer.map(textOf).join(', then ')}`] : []),
    ...(healthyPercent === undefined
      ? []
      : [`a priority gives traffic away below ${healthyPercent} percent of healthy endpoints`]),
  ];
}

/** The backends of each level; a Service that the policy adds has the number by which the table names it. */
function levelsOf({ levels, backends, otherBackends }: ResolvedRule): readonly string[] {
  if (!levels) return [];
  const inRule = [...backends, ...otherBackends].map(({ index, ref }) => ({
    index,
    level: levels.ofBackend.get(index) ?? 0,
    title: titleOfBackend(ref),
  }));
  const beyond = levels.beyond.map(({ index, level, ref }) => ({
    index,
    level,
    title: `${titleOfBackend(ref)} beyond the rule (backend ${index})`,
  }));
  const all = [...inRule, ...beyond].sort((a, b) => a.index - b.index);
  return [...new Set(all.map(({ level }) => level))]
    .sort((a, b) => a - b)
    .map(level => {
      const titles = all.filter(each => each.level === level).map(({ title }) => title);
      return `level ${level}: ${titles.join(', ')}`;
    });
}

function selectedText({ policy, backends }: ResolvedRule): string {
  const all = backends.flatMap(({ endpoints }) => endpoints.map(({ endpoint }) => endpoint));
  const selected = all.filter(endpoint => isRequired(policy, endpoint));
  return `selects ${selected.length} of ${all.length} ${all.length === 1 ? 'endpoint' : 'endpoints'}`;
}

function textOf({ matchLabels }: EndpointSelector): string {
  return metadataText(matchLabels, ' and ') || 'any metadata';
}
