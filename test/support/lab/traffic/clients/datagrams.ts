import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import type { Client, Exchange, Target } from './client.ts';

const AGAIN_MS = 500;

/** A client that sends datagrams, and repeats lost ones. */
export function datagramClient({ listener }: Target): Client {
  const opened = new Set<Exchange>();
  const open = () => {
    const exchange = exchangeWith(listener);
    opened.add(exchange);
    return exchange;
  };
  return {
    open: () => Promise.resolve(open()),
    echo: async bytes => {
      const one = open();
      const got = await one.turn(bytes);
      one.reset();
      return got;
    },
    close: () => {
      for (const exchange of opened) exchange.reset();
    },
  };
}

function exchangeWith(listener: string): Exchange {
  const [host = '', port] = listener.split(':');
  const socket = createSocket('udp4');
  let again: NodeJS.Timeout | undefined;
  let isOpen = true;
  return {
    turn: async bytes => {
      const send = () => socket.send(bytes, Number(port), host);
      const answer = answerTo(bytes, socket);
      again = setInterval(send, AGAIN_MS);
      send();
      await answer;
      clearInterval(again);
      return answer;
    },
    ending: () => Promise.resolve('cut'),
    reset: () => {
      clearInterval(again);
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
}

/** Late answers to repeated datagrams are ignored. */
async function answerTo(bytes: Buffer, socket: Socket): Promise<Buffer> {
  for (;;) {
    const [message] = (await once(socket, 'message')) as [Buffer];
    if (message.equals(bytes)) return message;
  }
}
