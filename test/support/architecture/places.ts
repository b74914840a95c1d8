/** The only files that read the environment. A new one is a decision: add it here. */
export const COMPOSITION_ROOTS: readonly string[] = [
  'lab/commands/cluster.ts',
  'lab/commands/conformance.ts',
  'lab/commands/image.ts',
  'lab/commands/lab.ts',
  'lab/commands/parts.ts',
  'lab/commands/schemas.ts',
  'lab/commands/soak.ts',
  'lab/commands/start.ts',
  'src/cli.ts',
  'src/extension-server.ts',
  'src/operator.ts',
  'src/relay.ts',
  'src/standalone.ts',
];

/** Whether a file is a composition root. */
export function isCompositionRoot(path: string): boolean {
  return COMPOSITION_ROOTS.includes(path);
}

/** Whether a file is written by codegen. */
export function isGenerated(path: string): boolean {
  return (
    path.startsWith('src/api/generated/') ||
    path.startsWith('src/extension/proto/') ||
    path.startsWith('synth/generated/')
  );
}

/** Whether a file is part of what is shipped or of what makes it, rather than of what judges it. */
export function isProduct(path: string): boolean {
  return /^(src|lab|codegen|synth)\//.test(path);
}

/** Whether a file is a test or serves tests. */
export function isTest(path: string): boolean {
  return path.startsWith('test/');
}
