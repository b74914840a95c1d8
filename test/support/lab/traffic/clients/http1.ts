import { Agent, request } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Client, Exchange, Target } from './client.ts';
import { Portions } from './portions.ts';
import { sendWhole } from './send-whole.ts';
import { textLines } from './text-lines.ts';
import { openWebSocket } from './websocket.ts';

/** A client that speaks HTTP/1.1, each exchange over a connection of its own. */
export function http1Client(target: Target): Client {
  const agent = new Agent();
  const ask = (options: RequestOptions) => {
    const { hostname, port } = new URL(`http://${target.listener}`);
    const sent = request({ hostname, port, agent, ...options, headers: { host: target.host } });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve).on('error', reject);
    });
    // A failure is thrown when the response is read.
    answer.catch(() => undefined);
    return { sent, answer: answer.then(expectOk) };
  };
  return {
    echo: async bytes => {
      const { sent, answer } = ask({ method: 'POST', path: '/echo' });
      sendWhole(bytes, sent);
      return wholeOf(await answer);
    },
    open: () => Promise.resolve(exchange(ask({ method: 'POST', path: '/echo' }))),
    lines: async () => {
      const { sent, answer } = ask({ path: '/lines/1000?everyMs=100' });
      sent.end();
      return textLines(await answer, () => sent.destroy());
    },
    webSocket: () => openWebSocket(target, '/websocket'),
    close: () => agent.destroy(),
  };
}

type Request = { readonly sent: ClientRequest; readonly answer: Promise<IncomingMessage> };

function exchange({ sent, answer }: Request): Exchange {
  const portions = answer.then(message => new Portions(message));
  portions.catch(() => undefined);
  return {
    turn: async bytes => {
      sent.write(bytes);
      return (await portions).take(bytes.length);
    },
    ending: async () => (await (await portions).rest()).ending,
    reset: () => (sent.socket ? sent.socket.resetAndDestroy() : sent.destroy()),
  };
}

async function expectOk(message: IncomingMessage): Promise<IncomingMessage> {
  if (message.statusCode === 200) return message;
  const { bytes } = await new Portions(message).rest();
  throw new Error(`status ${message.statusCode}: ${bytes.toString()}`);
}

async function wholeOf(message: IncomingMessage): Promise<Buffer> {
  const { bytes, ending } = await new Portions(message).rest();
  if (ending === 'cut') throw new Error(`the answer was cut behind ${bytes.length} bytes`);
  return bytes;
}
