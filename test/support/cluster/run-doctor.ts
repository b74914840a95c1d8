import { vi } from 'vitest';
import type { Cluster } from '../../../lab/cluster/cluster-folder.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { runDoctor } from '../../../src/tools/doctor/command.ts';
import type { Line } from '../../../src/tools/doctor/observed.ts';

/** Runs `mesh-gateway doctor` on a cluster; returns its lines, and all that it has printed. */
export async function doctorOn({ kubeconfig }: Pick<Cluster, 'kubeconfig'>) {
  const printed: string[] = [];
  const spies = (['log', 'error'] as const).map(name =>
    vi.spyOn(console, name).mockImplementation((text: string) => void printed.push(text)),
  );
  try {
    await runDoctor(['--kubeconfig', kubeconfig, '--output', 'json'], { environment: {}, operatorAccess });
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  const lines = JSON.parse(printed[0] ?? '[]') as readonly Line[];
  return { lines, printed: printed.join('\n') };
}
