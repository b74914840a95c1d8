import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readPlaced } from '../../src/api/yaml-documents.ts';
import { kindSupport } from '../../src/files/gateway/kinds.ts';
import { versionOfBinary } from '../../lab/parts/locate.ts';
import { QUICKSTART_GATEWAY, QUICKSTART_HOST, QUICKSTART_PORTS } from '../../lab/quickstart/quickstart.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { severityOf } from '../../src/api/problem.ts';
import { checkText } from '../support/tools/checked.ts';

type Any = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: Readonly<Record<string, unknown>>;
};

const FOLDER = join(PROJECT, 'examples', 'quickstart');
const files = readdirSync(FOLDER).map(file => ({ file, text: readFileSync(join(FOLDER, file), 'utf8') }));
const objects = files.flatMap(({ text }) => readPlaced(text).placed.map(({ object }) => object as Any));
const specsOf = (kind: string) => objects.filter(object => object.kind === kind).map(({ spec }) => spec);

describe('the objects of the quickstart', () => {
  it.each(files)('are valid, without a warning: $file', ({ text }) => {
    expect(checkText(text).findings.filter(each => severityOf(each) !== 'note')).toEqual([]);
  });

  it('are of kinds that Envoy Gateway reads from files, except MeshTailnet', () => {
    const fates = objects.map(({ apiVersion, kind }) => {
      const fate = kindSupport(apiVersion.slice(0, apiVersion.lastIndexOf('/')), kind);
      return fate.is === 'written' ? fate.as.apiVersion === apiVersion : kind;
    });
    expect(new Set(fates)).toEqual(new Set([true, 'MeshTailnet']));
  });

  it('match the options of the lab', () => {
    expect(specsOf('MeshTailnet')).toMatchObject([
      { pool: { addresses: [`127.0.0.1:${QUICKSTART_PORTS.proxyPort}`] } },
    ]);
    const listeners = Object.entries(QUICKSTART_GATEWAY.listeners).map(([name, port]) => ({ name, port }));
    expect(specsOf('Gateway')).toMatchObject([{ listeners }]);
    expect(specsOf('HTTPRoute')).toMatchObject([{ hostnames: [QUICKSTART_HOST] }]);
    expect(specsOf('EnvoyProxy')).toMatchObject([
      { provider: { host: { envoyVersion: versionOfBinary('envoy') } } },
    ]);
    const endpoints = specsOf('MeshEndpoints').flatMap(
      spec => spec['endpoints'] as readonly Readonly<Record<string, unknown>>[],
    );
    for (const { name, protocol, port } of endpoints) {
      const services: Readonly<Record<string, Readonly<Record<string, number>> | undefined>> =
        QUICKSTART_PORTS.services;
      expect(services[String(name)]?.[String(protocol).toLowerCase()]).toBe(port);
    }
  });
});
