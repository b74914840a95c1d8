import { MESH_POD, RELAY, relayName } from '../../../../src/api/names.ts';
import { targetsVersion } from '../../../../src/api/relay-targets.ts';
import { formatServices, parseServices, servicesVersion } from '../../../../src/api/served-services.ts';
import type { HttpGet } from '../../../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import type { PortsOfTailnet } from '../../../../src/controllers/mesh-endpoints/relay-ports.ts';
import { createPublished } from '../../../../src/runtime/published.ts';
import type { MemoryNamespace } from '../mesh-tailnet/namespace.ts';

const TAILNET = 'example';

/** Two mesh pods, which serve what their ConfigMap has; a test may stop one from following it. */
export class ServingPods {
  readonly #namespace: MemoryNamespace;
  /** What a pod serves that does not follow, by its address. */
  readonly #stopped = new Map<string, string>();
  readonly #addresses = ['10.0.0.1', '10.0.0.2'];

  constructor(namespace: MemoryNamespace) {
    this.#namespace = namespace;
  }

  /** Puts them into the cluster. */
  putPods(put: (object: object) => void): void {
    for (const [index, ip] of this.#addresses.entries()) {
      const labels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: TAILNET, [RELAY.label]: 'true' };
      const metadata = { name: `meshd-${index}`, namespace: 'mesh-system', uid: `pod-${index}`, labels };
      const status = { conditions: [{ type: 'Ready', status: 'True' }], podIPs: [{ ip }] };
      put({ apiVersion: 'v1', kind: 'Pod', metadata, status });
    }
  }

  /** One of them goes on as it is, whatever its ConfigMap has. */
  stopOne(): void {
    this.#stopped.set('10.0.0.1', this.#stored());
  }

  goOn(): void {
    this.#stopped.clear();
  }

  /** The targets of a service, of all pods that serve it. */
  targetsOf(name: string): readonly string[] {
    const texts = this.#addresses.map(address => this.#servedBy(address));
    const services = texts.flatMap(text => parseServices(text)).filter(service => service.name === name);
    return [...new Set(services.map(({ target }) => target))];
  }

  /** What the controller of relay ports needs beside that of the scene. */
  deps() {
    return {
      ownNamespace: this.#namespace,
      relayPorts: createPublished<PortsOfTailnet>(),
      relayPortRange: { first: 20_000, last: 20_009 },
      relayPortsPerNamespace: undefined,
      relayImage: 'mesh-gateway:test',
      httpGet: this.#respond,
    };
  }

  #servedBy(address: string): string {
    return this.#stopped.get(address) ?? this.#stored();
  }

  #stored(): string {
    return this.#data()['services'] ?? '';
  }

  #data(): Readonly<Record<string, string>> {
    const configMap = this.#namespace.find('ConfigMap', relayName(TAILNET));
    return (configMap?.['data'] ?? {}) as Readonly<Record<string, string>>;
  }

  readonly #respond: HttpGet = url => {
    const text = this.#servedBy(new URL(url).hostname);
    const services = servicesVersion(formatServices(parseServices(text)));
    const version = targetsVersion(this.#data()['targets'] ?? '');
    return Promise.resolve(JSON.stringify({ version, services, failed: {} }));
  };
}
