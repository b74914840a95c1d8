import fc from 'fast-check';
import type { Resource } from '../../../src/api/objects/resource.ts';
import { meshBackend, named, route } from '../declared.ts';
import { meshTailnet } from '../objects.ts';
import { readMeshEndpoints, resourceOf } from './resources.ts';

/* Objects of few names, tailnets and labels, so that many of them refer to each other. */

export const NAMES = ['default/a', 'team-a/a'];
export const TAILNETS = ['x.ts.net', 'y.ts.net'];
/** One of them fails what is derived from the object. */
export const LABELS = ['one', 'broken'];

const tailnets = fc.constantFrom(...TAILNETS);
const names = fc.constantFrom(...NAMES);

/** Few differences, so that a change is often of one of them alone. */
const others = fc.constantFrom(
  { metadata: { resourceVersion: '1' } },
  { metadata: { resourceVersion: '2' } },
  { metadata: { annotations: { a: 'b' } } },
  { metadata: {}, status: { observedGeneration: 1 } },
  { metadata: {}, status: { observedGeneration: 2 } },
);

const endpoints = fc
  .tuple(names, tailnets, fc.subarray(LABELS), others)
  .map(([name, tailnet, texts, given]) => {
    const { metadata, ...more } = given;
    const labels = Object.fromEntries(texts.entries());
    return { ...readMeshEndpoints(name, { tailnet }, { labels, ...metadata }), ...more };
  });

const meshTailnets = fc.tuple(fc.constantFrom('t', 'u'), tailnets, others).map(([name, tailnet, given]) => {
  const { metadata, ...more } = given;
  return { ...resourceOf(named(meshTailnet({ tailnet }), name, metadata)), ...more } as Resource;
});

const routes = fc.tuple(names, fc.subarray(['a', 'b'])).map(([name, backends]) => {
  const rules = [{ backendRefs: backends.map(backend => meshBackend({ name: backend })) }];
  return resourceOf(route('HTTPRoute', name, { rules }));
});

export const KINDS = ['MeshEndpoints', 'MeshTailnet', 'HTTPRoute'] as const;
export type Kind = (typeof KINDS)[number];
export const objects: fc.Arbitrary<Resource> = fc.oneof(
  { weight: 3, arbitrary: endpoints },
  meshTailnets,
  routes,
);
