import { stringify } from 'yaml';
import { readObjects } from '../../../src/tools/check/objects.ts';
import { parseRequest } from '../../../src/tools/trace/request.ts';
import { trace } from '../../../src/tools/trace/trace.ts';
import type { Step } from '../../../src/tools/trace/step.ts';
import { named, openGateway, route } from '../declared.ts';
import { meshEndpoints, meshTailnet } from '../objects.ts';

/** The objects of most requests: a MeshEndpoints of one endpoint, its MeshTailnet, and a Gateway. */
export const tailnet = named(
  meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }),
  'example',
);
export const web = named(meshEndpoints(), 'default/web');
export const gateway = openGateway('default/public');
export const all = [web, tailnet, gateway];

/** What a request is beside its target. */
export type TraceOptions = {
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly from?: string;
};

/** The steps of each way of a request, as lines. */
export function ways(...args: Parameters<typeof stepsOf>) {
  return stepsOf(...args).map(steps => steps.map(stepText));
}

function stepsOf(
  objects: readonly object[],
  target: string,
  { method = 'GET', headers = [], from }: TraceOptions = {},
) {
  const text = objects.map(object => stringify(object)).join('---\n');
  const request = parseRequest(target, { method, headers });
  return trace(readObjects([{ name: 'all.yaml', text }]), request, from).map(({ steps }) => steps);
}

function stepText({ is, name, text, problem }: Step): string {
  const { fix, example } = problem ?? {};
  const whole = [text, fix].filter(part => part !== undefined).join(': ');
  return `${is} ${name}: ${[whole, example].filter(part => part !== undefined).join('\n\n')}`;
}

/** The first broken step of each way. */
export const firstBroken = (...args: Parameters<typeof ways>) =>
  ways(...args).flatMap(steps => steps.find(line => line.startsWith('broken')) ?? []);

/** The reason of the first broken step of each way. */
export const reasonsOf = (...args: Parameters<typeof ways>) =>
  stepsOf(...args).flatMap(steps => steps.find(({ is }) => is === 'broken')?.problem?.reason ?? []);

/** An HTTPRoute with this specification. */
export const routeOf = (spec: Readonly<Record<string, unknown>>) => route('HTTPRoute', 'default/web', spec);
