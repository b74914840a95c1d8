import { readFile } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { readDocuments } from '../../api/yaml-documents.ts';
import { SettingError } from '../../telemetry/setting-error.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A cluster and a user as a kubeconfig names them; paths are absolute. */
export type KubeconfigEntry = { readonly cluster: Fields; readonly user: Fields };

/** The fields that are paths, which are meant from the folder of their file. */
const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

type Lists = {
  readonly current: string;
  readonly clusters: Fields;
  readonly users: Fields;
  readonly contexts: Fields;
};

/** The current context of kubeconfig files. As kubectl has it: the first file that names a thing says what it is. */
export async function readKubeconfig(setting: string): Promise<KubeconfigEntry> {
  const files = setting.split(delimiter).filter(file => file.trim() !== '');
  const read = await Promise.all(files.map(file => readLists(file, files.length > 1)));
  const all = read.flatMap(lists => lists ?? []);
  if (all.length === 0) fail('none of its files is there');
  const merged = all.reduceRight((rest, lists) => ({
    current: lists.current || rest.current,
    clusters: { ...rest.clusters, ...lists.clusters },
    users: { ...rest.users, ...lists.users },
    contexts: { ...rest.contexts, ...lists.contexts },
  }));
  return entryOf(merged);
}

function entryOf({ current, clusters, users, contexts }: Lists): KubeconfigEntry {
  if (current === '') fail('has no current-context: choose one by kubectl config use-context');
  const context = fieldsOf(contexts[current]) ?? fail(`has no context ${shown(current)}`);
  const [cluster, user] = [textOf(context['cluster']), textOf(context['user'])];
  return {
    cluster: fieldsOf(clusters[cluster]) ?? fail(`has no cluster ${shown(cluster)}`),
    user: user === '' ? {} : (fieldsOf(users[user]) ?? fail(`has no user ${shown(user)}`)),
  };
}

/** Of several files, some may be missing. */
async function readLists(file: string, mayBeMissing: boolean): Promise<Lists | undefined> {
  const text = await readText(file, mayBeMissing);
  if (text === undefined) return undefined;
  const { documents, faults } = readDocuments(text);
  const [fault] = faults;
  if (fault) fail(`${file}:${fault.line}: ${fault.message}`);
  const whole = fieldsOf(documents[0]?.value) ?? fail(`${file} is no kubeconfig`);
  const namedIn = (list: string, item: string) => named(whole[list], item, dirname(file));
  return {
    current: textOf(whole['current-context']),
    clusters: namedIn('clusters', 'cluster'),
    users: namedIn('users', 'user'),
    contexts: namedIn('contexts', 'context'),
  };
}

async function readText(file: string, mayBeMissing: boolean): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    if (code === 'ENOENT' && mayBeMissing) return undefined;
    return fail(`${file} cannot be read (${code})`);
  }
}

/** The items of a list by their names, the first of each. */
function named(list: unknown, item: string, folder: string): Fields {
  const found = Object.create(null) as Record<string, unknown>;
  for (const entry of Array.isArray(list) ? (list as readonly unknown[]) : []) {
    const fields = fieldsOf(entry) ?? {};
    const name = textOf(fields['name']);
    found[name] ??= withAbsolutePaths(fieldsOf(fields[item]) ?? {}, folder);
  }
  return found;
}

function withAbsolutePaths(fields: Fields, folder: string): Fields {
  const changed = Object.entries(fields).map(([name, value]) => {
    if (name === 'exec') return [name, withAbsoluteCommand(value, folder)];
    const isPath = PATHS.includes(name) && typeof value === 'string' && value !== '';
    return [name, isPath ? absolute(value, folder) : value];
  });
  return Object.fromEntries(changed) as Fields;
}

/** A command without a folder is looked for as any other. */
function withAbsoluteCommand(exec: unknown, folder: string): unknown {
  const fields = fieldsOf(exec);
  const command = textOf(fields?.['command']);
  return fields && command.includes('/') ? { ...fields, command: absolute(command, folder) } : exec;
}

function absolute(path: string, folder: string): string {
  return isAbsolute(path) ? path : join(folder, path);
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function fail(message: string): never {
  throw new SettingError('KUBECONFIG', message);
}
