import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, quantile } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { changeMs, openStreams } from './endpoints.ts';
import { inTurns, TRANSLATION } from './hooks.ts';
import { writeAdditions, writeWorld } from './objects.ts';
import { startOurs } from './programs.ts';
import type { Stage } from './programs.ts';

const WARM_CHANGES = 20;
const CHANGES = 200;
/** Within 10 percent of a server without policies. */
const MOST = 1.1;

/** Measures what a MeshRoutePolicy for each route costs: translations and changes on servers with and without, in turns. */
export async function policyFigures(stage: Stage): Promise<readonly Figure[]> {
  const { services } = stage.world;
  const [plainRoot, root] = ['without-policies', 'with-policies'].map(name => join(stage.root, name)) as [
    string,
    string,
  ];
  const plainWorld = writeWorld(plainRoot, services);
  const world = writeWorld(root, services, 'each');
  const plain = await startOurs({ ...stage, root: plainRoot, world: plainWorld });
  try {
    const server = await startOurs({ ...stage, root, world });
    try {
      const rounds = await inTurns(server, plain, world, TRANSLATION);
      const processor = rounds.map(({ ours, theirs }) => ours.processorMs / theirs.processorMs);
      const [plainEnvoys, envoys] = [await openStreams(plain, plainWorld), await openStreams(server, world)];
      const took: { readonly plain: number; readonly policies: number }[] = [];
      const count = WARM_CHANGES + CHANGES;
      const plainAdditions = writeAdditions(plainRoot, plainWorld, count);
      for (const [at, addition] of writeAdditions(root, world, count).entries()) {
        const other = plainAdditions[at];
        if (!other) break;
        took.push({ plain: await changeMs(plainEnvoys, other), policies: await changeMs(envoys, addition) });
        await sleep(10);
      }
      await plainEnvoys.end();
      await envoys.end();
      const measured = took.slice(WARM_CHANGES);
      const at = (share: number) => ({
        plain: quantile(
          measured.map(each => each.plain),
          share,
        ),
        policies: quantile(
          measured.map(each => each.policies),
          share,
        ),
      });
      const name = `a policy on each of ${services} routes, to none`;
      const ratioAt = (share: number) => at(share).policies / at(share).plain;
      return [
        { name: `Translation, processor time: ${name}`, value: median(processor), unit: 'x', aim: MOST },
        {
          name: 'change of a file to the last Envoy without policies, p50',
          value: at(0.5).plain,
          unit: 'ms',
        },
        {
          name: 'change of a file to the last Envoy with policies, p50',
          value: at(0.5).policies,
          unit: 'ms',
        },
        { name: `the same, p50: ${name}`, value: ratioAt(0.5), unit: 'x', aim: MOST },
        { name: `the same, p99: ${name}`, value: ratioAt(0.99), unit: 'x' },
      ];
    } finally {
      await server.stop();
    }
  } finally {
    await plain.stop();
  }
}
