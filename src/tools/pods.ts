const AT_ONCE = 4;

/** Asks pods, four at a time; returns what each responds, in their order. */
export async function askPods<P, R>(pods: readonly P[], ask: (pod: P) => Promise<R>): Promise<readonly R[]> {
  const waiting = pods.entries();
  const responses: R[] = [];
  const askNext = async () => {
    for (const [index, pod] of waiting) responses[index] = await ask(pod);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askNext));
  return responses;
}
