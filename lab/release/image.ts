import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contents } from '../cluster/images/contents.ts';
import { layOut } from '../cluster/images/images.ts';
import { ENTRYPOINT, ENVIRONMENT } from '../cluster/images/product.ts';
import { compress, sha256Of, tarFolder } from './archive.ts';
import type { Architecture } from './node-files.ts';

/** An image to write. */
export type ImageFile = {
  readonly contents: Contents;
  readonly architecture: Architecture;
  readonly tag: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly seconds: number;
  /** A folder for its parts, which is removed. */
  readonly work: string;
  readonly file: string;
};

type Blob = { readonly mediaType: string; readonly digest: string; readonly size: number };

const OCI = 'application/vnd.oci.image';

/**
 * Writes an image of one layer as an OCI layout in a tar file. It also has the list of `docker save`, so that docker load, kind and
 * containerd read it.
 */
export async function writeImage(image: ImageFile): Promise<void> {
  const { contents, architecture, tag, seconds, work, file } = image;
  const [tree, layout] = [join(work, 'tree'), join(work, 'layout')];
  mkdirSync(join(layout, 'blobs', 'sha256'), { recursive: true });
  layOut(tree, contents);
  const plain = join(work, 'layer.tar');
  await tarFolder(tree, plain, { seconds });
  rmSync(tree, { recursive: true });
  const layer = await addLayer(layout, plain);
  const created = new Date(seconds * 1000).toISOString();
  const config = addJson(layout, `${OCI}.config.v1+json`, {
    created,
    architecture,
    os: 'linux',
    config: configOf(image),
    rootfs: { type: 'layers', diff_ids: [`sha256:${await sha256Of(plain)}`] },
    history: [{ created, created_by: 'npm run release' }],
  });
  const schema = { schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json` };
  const manifest = addJson(layout, schema.mediaType, { ...schema, config, layers: [layer] });
  const annotations = {
    'io.containerd.image.name': `docker.io/library/${tag}`,
    'org.opencontainers.image.ref.name': tag,
  };
  const listed = { ...manifest, platform: { architecture, os: 'linux' }, annotations };
  const index = { schemaVersion: 2, mediaType: `${OCI}.index.v1+json`, manifests: [listed] };
  const pathOf = ({ digest }: Blob) => `blobs/${digest.replace(':', '/')}`;
  const saved = [{ Config: pathOf(config), RepoTags: [tag], Layers: [pathOf(layer)] }];
  const files = {
    'oci-layout': { imageLayoutVersion: '1.0.0' },
    'index.json': index,
    'manifest.json': saved,
  };
  for (const [name, value] of Object.entries(files)) writeFileSync(join(layout, name), JSON.stringify(value));
  await tarFolder(layout, file, { seconds });
  rmSync(work, { recursive: true });
}

function configOf({ labels }: ImageFile): object {
  const variables = Object.entries({ PATH: '/usr/local/bin', ...ENVIRONMENT });
  return {
    User: '65532:65532',
    Env: variables.map(([name, value]) => `${name}=${value}`),
    Entrypoint: ENTRYPOINT,
    Labels: labels,
  };
}

async function addLayer(layout: string, plain: string): Promise<Blob> {
  const packed = `${plain}.gz`;
  await compress(plain, packed);
  const hash = await sha256Of(packed);
  const { size } = statSync(packed);
  renameSync(packed, join(layout, 'blobs', 'sha256', hash));
  return { mediaType: `${OCI}.layer.v1.tar+gzip`, digest: `sha256:${hash}`, size };
}

function addJson(layout: string, mediaType: string, value: object): Blob {
  const text = JSON.stringify(value);
  const hash = createHash('sha256').update(text).digest('hex');
  writeFileSync(join(layout, 'blobs', 'sha256', hash), text);
  return { mediaType, digest: `sha256:${hash}`, size: Buffer.byteLength(text) };
}
