/** `npm run bench -- NAME [PART]`: measures, prints its steps and a table, and writes .cache/bench/NAME.json. */
import { EXIT, runMain } from '../lab/commands/run-main.ts';
import { printSteps } from '../lab/process/steps.ts';
import { check } from './check.ts';
import { compiler } from './compiler.ts';
import { control } from './control.ts';
import { discovery } from './discovery/discovery.ts';
import { failover } from './failover/failover.ts';
import { durationText, report } from './figures.ts';
import type { Bench } from './figures.ts';
import { front } from './front/front.ts';
import { health } from './health/health.ts';
import { kubernetes } from './kubernetes/kubernetes.ts';
import { meshPods } from './mesh-pods/mesh-pods.ts';
import { parts } from './parts.ts';
import { relay } from './relay/relay.ts';
import { runtime } from './runtime/runtime.ts';
import { tenants } from './tenants/tenants.ts';
import { traffic } from './traffic/traffic.ts';
import { translation } from './translation/translation.ts';
import { vipServices } from './vip-services.ts';

const BENCHES: Readonly<Record<string, Bench>> = {
  check,
  compiler,
  control,
  discovery,
  failover,
  front,
  health,
  kubernetes,
  'mesh-pods': meshPods,
  parts,
  relay,
  runtime,
  tenants,
  traffic,
  translation,
  'vip-services': vipServices,
};

await runMain('bench', async () => {
  const [, , name = '', part] = process.argv;
  const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
  if (!bench) throw new Error(`name a bench: ${Object.keys(BENCHES).join(', ')}`);
  const startMs = performance.now();
  console.error(durationText(name, part, bench.duration(part)));
  const figures = await bench.run(printSteps(), part);
  report({ name, part, tookMs: performance.now() - startMs }, figures);
  return EXIT.done;
});
