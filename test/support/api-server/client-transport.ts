import type { KubeClient } from '../../../lab/kube/client.ts';
import { statusError } from '../../../src/kubernetes/transport/status-error.ts';
import type { KubeRequest, KubeTransport, Verb } from '../../../src/kubernetes/transport/transport.ts';

const METHODS: Readonly<Partial<Record<Verb, string>>> = {
  create: 'POST',
  apply: 'PATCH',
  patch: 'PATCH',
  delete: 'DELETE',
};

/** Sends with the lab's client, so that a test of requests does not depend on the product's transport. */
export function clientTransport(client: KubeClient): Pick<KubeTransport, 'send'> {
  return {
    send: async ({ verb, path, query, body }: KubeRequest) => {
      const parameters = new URLSearchParams(query).toString();
      const content = body ? { contentType: body.type } : {};
      const whole = parameters === '' ? path : `${path}?${parameters}`;
      const answer = await client.request(METHODS[verb] ?? 'GET', whole, body?.value, content);
      if (answer.status < 300) return answer.body;
      const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
      const what = `${verb} ${path}`;
      throw statusError({
        what,
        status: answer.status,
        headers: {},
        body: text,
        secrets: [],
        now: new Date(),
      });
    },
  };
}
