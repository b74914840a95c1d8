import type { AccessOptions, Standing } from './access.ts';
import type { Credentials } from './access-account.ts';
import { AccessError } from './access-error.ts';
import type { KubeconfigEntry } from './access-kubeconfig.ts';
import { runProgram } from './credentials-program.ts';

type Fields = KubeconfigEntry['user'];
type Options = Pick<AccessOptions, 'environment' | 'clock' | 'now'>;

/** What a program said, or how it failed, about which question, and until when that counts by the clock. */
type Kept = {
  readonly question: string;
  readonly outcome: Promise<Credentials>;
  /** When it has ended. */
  readonly asked: number;
  readonly until: number;
};

/** Credentials are renewed so long before they end, so that they do not end on their way. */
const EARLY_MS = 10_000;

/** However often it fails or is refused, a program is not run again before so much time has gone by. */
const PAUSE_MS = 1000;

/** Asks the program that a kubeconfig names who we are; its answer counts until it ends or is refused. */
export function execCredentials(
  options: Options,
): (entry: KubeconfigEntry, standing: Standing) => Promise<Credentials> {
  const { clock } = options;
  let kept: Kept | undefined;
  const keep = (question: string, outcome: Promise<Credentials>, forMs = Infinity) => {
    kept = { question, outcome, asked: clock.now(), until: clock.now() + forMs };
  };
  return async (entry, standing) => {
    const question = JSON.stringify(entry);
    if (kept?.question === question) {
      const isGood = standing === 'good' && clock.now() < kept.until;
      if (isGood || clock.now() < kept.asked + PAUSE_MS) {
        return { ...(await kept.outcome), forMs: Math.max(0, kept.until - clock.now()) };
      }
    }
    const outcome = askProgram(entry, options);
    const forMs = await outcome.then(
      credentials => credentials.forMs,
      () => 0,
    );
    keep(question, outcome, forMs);
    return await outcome;
  };
}

async function askProgram(
  entry: KubeconfigEntry,
  { environment, now, clock }: Options,
): Promise<Credentials> {
  const exec = fieldsOf(entry.user['exec']);
  const version = textOf(exec['apiVersion']);
  const command = textOf(exec['command']);
  if (command === '') throw new AccessError('exec of the user names no command');
  if (exec['interactiveMode'] === 'Always') throw new AccessError(`${command} wants to ask somebody`);
  const info = {
    apiVersion: version,
    kind: 'ExecCredential',
    spec: { interactive: false, ...(exec['provideClusterInfo'] === true ? { cluster: entry.cluster } : {}) },
  };
  const output = await runProgram({
    command,
    args: listOf(exec['args']).map(String),
    environment: { ...environment, ...variablesOf(exec), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    clock,
  });
  return credentialsOf(command, output, now());
}

function variablesOf(exec: Fields): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listOf(exec['env']).map(variable => {
      const { name, value } = fieldsOf(variable);
      return [textOf(name), textOf(value)] as const;
    }),
  );
}

function credentialsOf(command: string, output: string, now: Date): Credentials {
  const status = fieldsOf(fieldsOf(parsed(output))['status']);
  const [token, cert, key] = ['token', 'clientCertificateData', 'clientKeyData'].map(name =>
    textOf(status[name]),
  );
  if (!token && !(cert && key)) throw new AccessError(`${command} gave no credentials`);
  const end = Date.parse(textOf(status['expirationTimestamp']));
  return {
    ...(token ? { token } : {}),
    ...(cert && key ? { cert, key } : {}),
    ...(Number.isNaN(end) ? {} : { forMs: Math.max(0, end - now.getTime() - EARLY_MS) }),
  };
}

/** What is no JSON may be anything, a secret too. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}
