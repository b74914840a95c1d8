/** Run by the bench `runtime`, bundled as the product is: prints the memory of a store of 10,000 objects. */
import { decode } from '../../src/api/objects/decode.ts';
import { keyOf } from '../../src/api/key.ts';
import { refTo, tailnetsOf } from '../../src/api/objects/references.ts';
import type { Index } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { manyEndpoints } from '../many-endpoints.ts';

const OBJECTS = 10_000;

const byTailnet: Index<'MeshEndpoints'> = { name: 'tailnet', kind: 'MeshEndpoints', valuesOf: tailnetsOf };
const store = new ResourceStore([byTailnet], failure => {
  throw failure;
});
for (let index = 0; index < OBJECTS; index += 1) {
  // Parsed from text, as objects from outside are.
  const decoding = decode(JSON.parse(JSON.stringify(manyEndpoints(index))));
  if (decoding.is !== 'resource') throw new Error(`object ${index} was not read`);
  store.put(decoding.resource, true);
}
store.markSynced();
globalThis.gc?.();
const found = store.find(byTailnet, 'tailnet-1.ts.net');
const [first] = found;
console.log(
  JSON.stringify({
    objects: store.list('MeshEndpoints').length,
    found: found.length,
    first: first && keyOf(refTo(first)),
    rssBytes: process.memoryUsage().rss,
  }),
);
