import { done, ok, Refusal } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { bodyOf, field, isObject, texts } from '../call.ts';
import type { Call } from '../call.ts';
import { isMeshIPv4 } from './devices.ts';
import { newAddresses } from '../state.ts';
import type { Approval, ServiceHost, State, VipService } from '../state.ts';
import { expectPermittedTags } from './tags.ts';

/** Calls to the real tailnet behind the simulator that change a service. */
export type ServiceEffects = {
  /** Returns the addresses that the tailnet has given it; undefined where the simulator gives them. */
  readonly createService: (name: string) => Promise<ServiceAddresses | undefined>;
  readonly removeService: (name: string) => Promise<void>;
};

/** The IPv4 and the IPv6 address of a service. */
type ServiceAddresses = readonly [ipv4: string, ipv6: string];

const NAME = /^svc:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** `GET /tailnet/-/services`. */
export function listServices(state: State): Answer {
  return ok({ vipServices: state.services.list().map(wireService) });
}

/** `GET /tailnet/-/services/{name}`. */
export function getService(state: State, call: Call): Answer {
  const service = state.services.read(call.params['name'] ?? '');
  if (!service) throw new Refusal(404, 'service not found');
  return ok(wireService(service));
}

/** `DELETE /tailnet/-/services/{name}`. */
export function deleteService(state: State, call: Call): Answer {
  const name = existing(state, call).name;
  state.services.delete(name);
  for (const host of hostsOf(state, name)) state.hosts.delete(`${name} ${host.nodeId}`);
  return done(state.dialect);
}

/** `PUT /tailnet/-/services/{name}`: creates it, or replaces it whole; another name in the body renames it. */
export function putService(state: State, call: Call): Answer {
  const { name: path = '' } = call.params;
  const wanted = serviceIn(call);
  const current = state.services.current(path);
  if (!current && wanted.name !== path) throw new Refusal(400, 'name in the body must be that of the path');
  if (wanted.name !== path || !current) expectFreeName(state, wanted.name);
  if (wanted.tags.length > 0) expectPermittedTags(wanted.tags, call.token.tags, state.policy);
  const addrs = current ? updatedAddresses(current, wanted.addrs) : createdAddresses(state, wanted.addrs);
  const service = { ...wanted, addrs };
  if (current && wanted.name !== path) rename(state, path, wanted.name);
  state.services.put(service.name, service);
  if (!current || state.createdServices.has(path)) state.createdServices.add(service.name);
  return state.behaviour.emptyServiceAnswers ? { status: 200 } : ok(wireService(service));
}

/** The same, with a real tailnet behind the simulator. */
export async function putServiceBehind(state: State, call: Call, effects: ServiceEffects): Promise<Answer> {
  const { name = '' } = call.params;
  const isNew = !state.services.current(name);
  const answer = putService(state, call);
  const addrs = isNew ? await effects.createService(name) : undefined;
  const service = state.services.current(name);
  if (!addrs || !service) return answer;
  state.services.put(name, { ...service, addrs });
  return ok(wireService({ ...service, addrs }));
}

/** `DELETE /tailnet/-/services/{name}` with a real tailnet behind the simulator. */
export async function deleteServiceBehind(
  state: State,
  call: Call,
  effects: ServiceEffects,
): Promise<Answer> {
  const answer = deleteService(state, call);
  await effects.removeService(call.params['name'] ?? '');
  return answer;
}

/** `GET /tailnet/-/services/{name}/devices`: who advertises it. */
export function listHosts(state: State, call: Call): Answer {
  const { name } = existing(state, call);
  const hosts = state.hosts.list().filter(({ service }) => service === name);
  return ok({
    hosts: hosts.map(({ nodeId, approval }) => ({
      stableNodeID: nodeId,
      approvalLevel: approval,
      configured: 'ready',
    })),
  });
}

/** `GET /tailnet/-/services/{name}/device/{id}/approved`. */
export function getApproval(state: State, call: Call): Answer {
  return ok(wireApproval(hostIn(state, call)));
}

/** `POST /tailnet/-/services/{name}/device/{id}/approved`. */
export function setApproval(state: State, call: Call): Answer {
  const host = hostIn(state, call);
  const isApproved = field(bodyOf(call), 'approved', 'boolean');
  if (isApproved === undefined) throw new Refusal(400, 'approved must be a boolean');
  const approval: Approval = isApproved ? 'approved:manual' : 'not-approved';
  const changed = { ...host, approval };
  putHost(state, changed);
  return ok(wireApproval(changed));
}

/** A device advertises a service, as it does by its serve configuration; it has to have tags. */
export function advertise(state: State, service: string, nodeId: string): ServiceHost {
  const device = state.devices.current(nodeId);
  if (!device || device.tags.length === 0) throw new Error(`${nodeId} is not a device with tags`);
  const rules = state.policy.autoApprovers?.services ?? {};
  const serviceTags = state.services.current(service)?.tags ?? [];
  const approvers = [service, ...serviceTags].flatMap(name => rules[name] ?? []);
  const isApproved = approvers.some(tag => device.tags.includes(tag));
  const host: ServiceHost = { service, nodeId, approval: isApproved ? 'approved:auto' : 'not-approved' };
  putHost(state, host);
  return host;
}

/** A device does not advertise a service any more. */
export function withdraw(state: State, service: string, nodeId: string): void {
  state.hosts.delete(`${service} ${nodeId}`);
}

function hostsOf(state: State, name: string): readonly ServiceHost[] {
  return state.hosts.all().filter(({ service }) => service === name);
}

function putHost(state: State, host: ServiceHost): void {
  state.hosts.put(`${host.service} ${host.nodeId}`, host);
}

function existing(state: State, call: Call): VipService {
  const service = state.services.current(call.params['name'] ?? '');
  if (!service) throw new Refusal(404, 'service not found');
  return service;
}

function hostIn(state: State, call: Call): ServiceHost {
  const { name } = existing(state, call);
  const { id } = call.params;
  const device = state.devices.all().find(one => one.nodeId === id || one.id === id);
  const host = device && state.hosts.current(`${name} ${device.nodeId}`);
  if (!host) throw new Refusal(404, 'device does not advertise this service');
  return host;
}

function wireApproval({ approval }: ServiceHost): Readonly<Record<string, boolean>> {
  return { approved: approval !== 'not-approved', autoApproved: approval === 'approved:auto' };
}

function serviceIn(call: Call): VipService {
  const body = bodyOf(call);
  const name = field(body, 'name', 'string') ?? '';
  if (!NAME.test(name)) throw new Refusal(400, `invalid service name "${name}"`);
  const ports = texts(body, 'ports');
  const wrong = ports.find(port => !isPort(port));
  if (wrong !== undefined) throw new Refusal(400, `invalid port "${wrong}"`);
  const [displayName, comment] = [field(body, 'displayName', 'string'), field(body, 'comment', 'string')];
  return {
    name,
    ...(displayName === undefined ? {} : { displayName }),
    ...(comment === undefined ? {} : { comment }),
    addrs: texts(body, 'addrs'),
    ports,
    tags: texts(body, 'tags'),
    annotations: annotationsIn(body),
  };
}

function annotationsIn(body: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const annotations = body['annotations'] ?? {};
  if (isObject(annotations) && Object.values(annotations).every(value => typeof value === 'string'))
    return annotations as Readonly<Record<string, string>>;
  throw new Refusal(400, 'annotations must be a map of strings');
}

/** Only TCP is documented. */
function isPort(text: string): boolean {
  const number = Number(/^tcp:(\d+)$/.exec(text)?.[1]);
  return text === 'do-not-validate' || (number >= 1 && number <= 65_535);
}

function expectFreeName(state: State, name: string): void {
  if (state.services.current(name)) throw new Refusal(409, `service ${name} exists`);
  const fqdn = `${name.slice('svc:'.length)}.${state.domain}`;
  if (state.devices.all().some(device => device.name === fqdn))
    throw new Refusal(409, `name ${fqdn} is in use by a device`);
}

/** A new service has no address yet, or the given IPv4 address. */
function createdAddresses(state: State, addrs: readonly string[]): readonly string[] {
  const [wanted] = addrs;
  if (addrs.length > 1 || (wanted !== undefined && !isMeshIPv4(wanted)))
    throw new Refusal(400, 'addrs of a new service must be empty or one IPv4 address');
  const [ipv4, ipv6] = newAddresses(state, 'services');
  return [wanted ?? ipv4, ipv6];
}

/** The pair comes back with every update; its IPv4 address may change. */
function updatedAddresses({ addrs: [, ipv6] }: VipService, addrs: readonly string[]): readonly string[] {
  const [ipv4, sameIpv6] = addrs;
  if (addrs.length !== 2 || ipv4 === undefined || !isMeshIPv4(ipv4))
    throw new Refusal(400, 'addrs must be the IPv4 and the IPv6 address of the service');
  if (sameIpv6 !== ipv6) throw new Refusal(400, 'the IPv6 address of a service cannot be changed');
  return [ipv4, sameIpv6 ?? ''];
}

function rename(state: State, from: string, to: string): void {
  state.services.delete(from);
  for (const host of hostsOf(state, from)) {
    state.hosts.delete(`${from} ${host.nodeId}`);
    putHost(state, { ...host, service: to });
  }
}

/** Fields without a value are left out. */
function wireService(service: VipService): Readonly<Record<string, unknown>> {
  const { tags, annotations, ...rest } = service;
  return {
    ...rest,
    ...(tags.length > 0 ? { tags } : {}),
    ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
  };
}
