import { Refusal } from '../../../../lab/control-api/answer.ts';
import type { Answer } from '../../../../lab/control-api/answer.ts';
import type { Call } from '../../../../lab/control-api/call.ts';
import {
  deleteService,
  getService,
  listHosts,
  listServices,
  putService,
} from '../../../../lab/control-api/operations/services.ts';
import type { State } from '../../../../lab/control-api/state.ts';
import type { Fields } from '../../../../src/api/json.ts';
import { ControlError } from '../../../../src/control/control.ts';
import type { ControlApi } from '../../../../src/control/control.ts';
import { decodeService, decodeServiceHosts, decodeServices } from '../../../../src/control/decode.ts';

/** The part of the control API for VIP services. */
export type ServicesApi = Pick<
  ControlApi,
  'services' | 'service' | 'putService' | 'deleteService' | 'serviceHosts'
>;

/** Carries out a call, whose name begins with `get` or `services.list` where it changes nothing. */
export type PerformCall = (name: string, act: () => Answer) => Promise<Answer>;

/** The simulated control API without HTTP: each call is carried out when and as a test wants. */
export function servicesApiOn(state: State, perform: PerformCall): ServicesApi {
  const jsonOf = ({ json }: Answer) => json as Fields;
  return {
    services: async () => decodeServices(jsonOf(await perform('services.list', () => listServices(state)))),
    service: async name => {
      const act = () => (state.services.current(name) ? getService(state, callOf(name)) : ABSENT);
      const answer = await perform(`get service ${name}`, act);
      return answer === ABSENT ? undefined : decodeService(jsonOf(answer));
    },
    putService: async (name, fields) => {
      await perform(`put service ${name}`, () => putService(state, callOf(name, fields)));
    },
    deleteService: async name => {
      const act = () => (state.services.current(name) ? deleteService(state, callOf(name)) : ABSENT);
      await perform(`delete service ${name}`, act);
    },
    serviceHosts: async name => {
      const answer = await perform(`get hosts ${name}`, () => listHosts(state, callOf(name)));
      return decodeServiceHosts(jsonOf(answer));
    },
  };
}

const ABSENT: Answer = { status: 404 };

function callOf(name: string, body: Fields = {}): Call {
  const token = { credential: 'client', scopes: ['services'], tags: ['tag:mesh'], expiresMs: Infinity };
  const request = { query: new URLSearchParams(), headers: {}, body: JSON.stringify(body) };
  return { params: { name }, ...request, token, hasScope: () => true };
}

/** What the client makes of a refusal. */
export function controlErrorOf(error: unknown): Error {
  if (!(error instanceof Refusal)) return error as Error;
  const { status, message } = error;
  return new ControlError(status === 404 ? 'NotFound' : 'Invalid', message, { status });
}
