import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { keyOf } from '../../src/api/key.ts';
import type { Key, ResourceKind } from '../../src/api/key.ts';
import { openDirectory } from '../../src/files/directory.ts';
import { describeResources } from '../contract/resources.ts';
import { QUICK, fileOf, makeFolders, removeFile, writeWhole } from '../support/files/folder.ts';

type Written = {
  readonly kind: ResourceKind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
};

const WITHOUT_NAMESPACE: readonly ResourceKind[] = ['MeshTailnet', 'GatewayClass', 'Namespace'];

/** The key of an object of a user, valid or not. */
function keyOfWritten(object: object): Key {
  const { kind, metadata } = object as Written;
  const namespace = WITHOUT_NAMESPACE.includes(kind) ? '' : (metadata.namespace ?? 'default');
  return keyOf({ kind, namespace, name: metadata.name });
}

describeResources('a directory', async ({ indexes, first, reportFailure }) => {
  const folders = makeFolders();
  await mkdir(folders.folder);
  const put = (value: object) =>
    writeWhole(join(folders.folder, fileOf(keyOfWritten(value))), JSON.stringify(value));
  for (const value of first) await put(value);
  const directory = openDirectory({
    ...folders,
    indexes,
    reportFailure,
    report: () => undefined,
    timing: QUICK,
  });
  return {
    ...directory,
    author: { put, remove: ref => removeFile(join(folders.folder, fileOf(keyOf(ref)))) },
    start: () => {
      directory.start();
      return Promise.resolve();
    },
  };
});
