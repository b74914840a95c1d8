import type { BinaryName } from '../../parts/parts.ts';

/** The images of the cluster's pods: programs with the libraries they need, and nothing else; the first is what it runs. */
export const IMAGES = [
  { name: 'pause', programs: ['pause'] },
  { name: 'envoy-gateway', programs: ['envoy-gateway'] },
  { name: 'envoy', programs: ['envoy'] },
  { name: 'tailscale', programs: ['containerboot', 'tailscaled', 'tailscale'] },
  { name: 'backends', programs: ['backends'] },
  { name: 'node', programs: ['node'] },
  // The backends of the conformance suite, which asks for them by other names.
  { name: 'echo-basic', programs: ['echo-basic'] },
  { name: 'coredns', programs: ['coredns'] },
] as const satisfies readonly {
  readonly name: string;
  readonly programs: readonly [BinaryName, ...BinaryName[]];
}[];

/** One of the images. */
export type Image = (typeof IMAGES)[number];

/** The name of an image, in a registry that does not exist, so that it is never pulled. */
export function imageOf(name: Image['name']): string {
  return `mesh-gateway.test/${name}:lab`;
}
