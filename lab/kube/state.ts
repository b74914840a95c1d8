import { isRecord } from '../../src/api/json.ts';
import type { KubeObject } from './object.ts';

/** The fields of a condition that are read here. */
export type KubeCondition = {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
};

/** The conditions in the status of an object. */
export function conditionsOf(object: KubeObject): readonly KubeCondition[] {
  const { status } = object;
  const found = isRecord(status) ? status['conditions'] : undefined;
  return isConditions(found) ? found : [];
}

const MAX_LENGTH = 600;

/**
 * The state of an object on one line: every list of conditions in its status, those that are not True first and with
 * their messages; the whole status if there are none.
 */
export function describeState({ metadata, status }: KubeObject): string {
  const lists = conditionListsIn(status, '').map(
    ([path, conditions]) => path + describeConditions(conditions),
  );
  const deletion = 'deletionTimestamp' in metadata ? ['is being deleted'] : [];
  const waiting = waitingIn(status);
  const texts = [...deletion, ...lists, ...waiting];
  if (texts.length > 0) return texts.join('; ');
  return status === undefined ? 'it has no status' : JSON.stringify(status).slice(0, MAX_LENGTH);
}

function describeConditions(conditions: readonly KubeCondition[]): string {
  if (conditions.length === 0) return 'no conditions';
  const falseFirst = [...conditions].sort(
    (a, b) => Number(a.status === 'True') - Number(b.status === 'True'),
  );
  return falseFirst.map(describeCondition).join(', ');
}

function describeCondition({ type, status, reason, message = '' }: KubeCondition): string {
  const parts = [reason ?? '', status === 'True' ? '' : message.replaceAll(/\s+/g, ' ')];
  const detail = parts.filter(text => text !== '').join(': ');
  return `${type}=${status}${detail === '' ? '' : ` (${detail})`}`;
}

type FoundConditions = readonly [string, readonly KubeCondition[]];

/** Routes and gateways keep conditions for each parent and listener. */
function conditionListsIn(value: unknown, path: string): readonly FoundConditions[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => conditionListsIn(item, `${path}[${index}]`));
  }
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === 'conditions' && isConditions(inner))
      return [[path === '' ? '' : `${path}: `, inner] as const];
    return conditionListsIn(inner, path === '' ? key : `${path}.${key}`);
  });
}

/** Why the containers of a pod do not run, which its conditions do not contain. */
function waitingIn(status: unknown): readonly string[] {
  const containers = isRecord(status) ? status['containerStatuses'] : undefined;
  if (!Array.isArray(containers)) return [];
  return containers.filter(isRecord).flatMap(({ name, state }) => {
    const running = isRecord(state) && 'running' in state;
    return running ? [] : [`container ${String(name)}: ${JSON.stringify(state).slice(0, MAX_LENGTH)}`];
  });
}

function isConditions(value: unknown): value is readonly KubeCondition[] {
  return Array.isArray(value) && value.every(item => isRecord(item) && 'type' in item && 'status' in item);
}
