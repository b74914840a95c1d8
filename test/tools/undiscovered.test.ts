import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { check } from '../../src/tools/check/check.ts';
import { Catalog, readObjects } from '../../src/tools/check/objects.ts';
import { trackingOf } from '../../src/tools/check/traffic.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { routeText, routeTracer } from '../../src/tools/trace/routes.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import { findingText } from '../support/tools/checked.ts';

const DISCOVERING = readFileSync('examples/discovery/web.yaml', 'utf8');
const AROUND = ['tailnet', 'gateway'].map(name => readFileSync(`examples/cluster/${name}.yaml`, 'utf8'));

/** What each tool makes of files with an object that finds its devices by their tags. */
function answersFor(discovering: string) {
  const declarations = readObjects([{ name: 'all.yaml', text: [...AROUND, discovering].join('---\n') }]);
  const request = parseRequest('http://web.example.com/', { method: 'GET', headers: [] });
  const [way] = trace(declarations, request, undefined);
  const catalog = new Catalog(declarations);
  const [route] = routeTracer(trackingOf(catalog), {}, catalog)();
  return {
    found: check(declarations)
      .findings.map(findingText)
      .filter(text => !text.startsWith('note')),
    way: [way?.reaches, way?.steps.at(-1)?.is, way?.steps.at(-1)?.text],
    route: [route?.outcome.rules[0]?.reaches, route && routeText(route)],
  };
}

const PORT_NOT_FOUND =
  'PortNotFound: spec.rules[0].backendRefs[0]: port 8081 is not a port of MeshEndpoints default/web';

describe('files in which devices are found by their tags', () => {
  it('are judged by the template', () => {
    const { found, way, route } = answersFor(DISCOVERING);
    expect(found).toEqual([]);
    expect(way).toEqual(['all', 'unknown', expect.stringContaining('port 8080 of the devices that match')]);
    expect(route[0]).toBe('all');
    expect(route[1]).not.toContain('PortNotFound');
  });

  it('have a port that is no port of the template', () => {
    const wrong = DISCOVERING.replace(/port: 8080\n$/, 'port: 8081\n');
    const { found, way, route } = answersFor(wrong);
    expect(found).toEqual([
      expect.stringContaining(`error ${PORT_NOT_FOUND}: use one that it has (it has 8080)`),
    ]);
    expect(way).toEqual(['none', 'broken', expect.stringContaining(PORT_NOT_FOUND)]);
    expect(route).toEqual(['none', expect.stringContaining(`not used: ${PORT_NOT_FOUND}`)]);
  });

  it('have a protocol that the kind of route does not support', () => {
    const wrong = DISCOVERING.replace('protocol: HTTP', 'protocol: TCP').replace(
      '      path: /healthz\n',
      '      type: TCP\n',
    );
    const { found, way } = answersFor(wrong);
    expect(found).toEqual([expect.stringContaining('error ProtocolMismatch: spec.rules[0].backendRefs[0]')]);
    expect(way[0]).toBe('none');
  });

  it('have a tag that the MeshTailnet does not allow', () => {
    const [tailnet = '', gateway = ''] = AROUND;
    const limited = tailnet.replace('spec:\n', 'spec:\n  allowedTags: [tag:db]\n');
    const text = [limited, gateway, DISCOVERING].join('---\n');
    const [found] = check(readObjects([{ name: 'all.yaml', text }])).findings.filter(
      ({ reason }) => reason === 'TagNotAllowed',
    );
    expect(found && findingText(found)).toBe(
      'error TagNotAllowed: spec.tagSelectors: spec.allowedTags of MeshTailnet example has no tag that web of spec.tagSelectors could match, so no device is found: correct the selectors, or add a tag there',
    );
  });

  it('have endpoints by any name', () => {
    const named = readFileSync('examples/cluster/web.yaml', 'utf8').replace(
      /- name: web\S*/,
      '- name: devices-of-tagselectors',
    );
    const { way, route } = answersFor(named);
    expect(way).toEqual(['all', 'ok', expect.stringMatching(/example\.ts\.net$/)]);
    expect(route[1]).not.toContain('devices of');
  });

  it('are not judged where the tags of devices decide about ports', () => {
    const { found, way, route } = answersFor(DISCOVERING.replace('    port: 8080\n', ''));
    expect(found).toEqual([]);
    expect(way).toEqual(['unknown', 'unknown', expect.stringContaining('not known from these objects')]);
    expect(route).toEqual(['unknown', expect.stringContaining('not known from these objects')]);
  });
});
