/** `npm run schemas`: writes the schemas of the CRDs in Envoy Gateway's chart that the package has. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { locateBinaries, versionOfBinary } from '../parts/locate.ts';
import { differencesIn, SHIPPED_FOLDER, shippedSchemas } from '../schemas/shipped-schemas.ts';
import { EXIT, runMain } from './run-main.ts';

await runMain('schemas', () => {
  const chart = locateBinaries(process.env)('gateway-helm');
  const files = shippedSchemas(chart, versionOfBinary('gateway-helm'));
  for (const difference of differencesIn(SHIPPED_FOLDER, files)) console.log(`  ${difference}`);
  rmSync(SHIPPED_FOLDER, { recursive: true });
  mkdirSync(SHIPPED_FOLDER);
  for (const [name, text] of files) writeFileSync(join(SHIPPED_FOLDER, name), text);
  console.log(`${files.size} files`);
  return Promise.resolve(EXIT.done);
});
