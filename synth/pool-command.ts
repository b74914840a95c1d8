import { parseArgs } from 'node:util';
import { Yaml } from 'cdk8s';
import { readConfiguration } from './config.ts';
import { readText } from './folder.ts';
import { userPool } from './pool.ts';

/** Runs `mesh-gateway synth pool`; returns the exit code. */
export async function runSynthPool(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      config: { type: 'string' },
      tailnet: { type: 'string' },
      address: { type: 'string' },
      namespace: { type: 'string', default: 'mesh-pools' },
    },
  });
  const { config, tailnet, address, namespace } = values;
  if (tailnet === undefined) throw new Error('synth pool: name the file of a MeshTailnet: --tailnet FILE');
  const read = readConfiguration(config === undefined ? '' : await readText(config));
  if (read.faults) return refused(config ?? 'the defaults', read.faults);
  const { installation } = read;
  const pool = userPool({ installation, tailnet: await readText(tailnet), address, namespace });
  if (pool.faults) return refused(tailnet, pool.faults);
  // Without the anchors of objects that are there twice.
  process.stdout.write(Yaml.stringify(...(JSON.parse(JSON.stringify(pool.objects)) as readonly object[])));
  if (address === undefined) console.error(NEXT);
  return 0;
}

const NEXT =
  'without --address there is no MeshTailnet: apply the objects, and print them again with the address of the Service';

function refused(file: string, faults: readonly string[]): number {
  for (const fault of faults)
    console.error(fault.startsWith('--') ? `synth pool: ${fault}` : `${file}: ${fault}`);
  return 2;
}
