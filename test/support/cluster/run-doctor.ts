import { vi } from 'vitest';
import type { Cluster } from '../../../lab/cluster/cluster-folder.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { runDoctor } from '../../../src/tools/doctor/command.ts';
import type { Line } from '../../../src/tools/doctor/observed.ts';

/** Runs `mesh-gateway doctor` on a cluster; returns its exit code, its lines, and all that it has printed. */
export async function doctorOn({ kubeconfig }: Pick<Cluster, 'kubeconfig'>, ...args: readonly string[]) {
  const printed: string[] = [];
  const spies = (['log', 'error'] as const).map(name =>
    vi.spyOn(console, name).mockImplementation((text: string) => void printed.push(text)),
  );
  try {
    const all = ['--kubeconfig', kubeconfig, '--output', 'json', ...args];
    const code = await runDoctor(all, { environment: {}, operatorAccess });
    const { checks: lines } = JSON.parse(printed[0] ?? '{ "checks": [] }') as {
      readonly checks: readonly Line[];
    };
    return { code, lines, printed: printed.join('\n') };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
