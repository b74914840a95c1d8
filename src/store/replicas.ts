/** A process of the installation, by its component. */
export type ComponentPod = {
  readonly component: 'operator' | 'extensionServer';
  readonly name: string;
  readonly uid: string;
  /** The primary one; undefined until its node has assigned it, and where the pod has the network of its node. */
  readonly address: string | undefined;
  /** It is ready, and not being deleted. */
  readonly isReady: boolean;
};

/** The pods of the processes, and what the replicas of the operator report to each other. All fail with ResourceError. */
export interface Replicas {
  pods(): Promise<readonly ComponentPod[]>;
  /** The last report of each replica, by the name of its pod. */
  reports(): Promise<Readonly<Record<string, string>>>;
  /** Writes reports by the names of pods, and leaves the others; null removes one. Every replica may write, not the leader alone. */
  report(changes: Readonly<Record<string, string | null>>): Promise<void>;
}
