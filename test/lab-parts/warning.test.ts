import { describe, expect, it } from 'vitest';
import { refusalIn, warningIn } from '../../lab/quickstart/warning.ts';
import { otherNameOf } from '../../src/api/names.ts';

describe('the warning of a log line', () => {
  it.each([
    [{ level: 'info', msg: 'fine' }, undefined],
    [{ level: 'warn', msg: 'wrong', file: 'a.yaml', line: 3, why: 'port: 0' }, 'wrong: a.yaml:3: port: 0'],
    [{ level: 'warn', msg: 'left', object: 'Service/a/b', file: 'a.yaml' }, 'left: Service/a/b:a.yaml'],
    [{ level: 'error', msg: 'failed', error: { message: 'ENOSPC' } }, 'failed: ENOSPC'],
    [{ level: 'error', msg: 'failed' }, 'failed'],
  ])('%j', (line, warning) => {
    expect(warningIn(JSON.stringify(line))).toBe(warning);
  });
});

describe('a refusal of Envoy Gateway', () => {
  const files = { 'gateway.networking.k8s.io|HTTPRoute|default|web': 'web.yaml' } as const;
  const manifests = {
    keys: () => Object.keys(files) as (keyof typeof files)[],
    get: () => ({ file: 'web.yaml', object: {} as never }),
  };
  const refused = (name: string) =>
    `failed to load resources from file /state/mesh-gateway.yaml: local validation error: HTTPRoute.gateway.networking.k8s.io "${name}" is invalid: spec: wrong`;

  it('names the file of the user that has the object, also while that is renamed', () => {
    expect(refusalIn(refused('web'), manifests)).toBe(
      'web.yaml: HTTPRoute.gateway.networking.k8s.io "web" is invalid: spec: wrong',
    );
    expect(refusalIn(refused(otherNameOf('web', 1) ?? ''), manifests)).toMatch(/^web\.yaml: /);
  });

  it('stays as it is about any other object', () => {
    expect(refusalIn(refused('other'), manifests)).toBe(refused('other'));
    expect(refusalIn('yaml: line 3', manifests)).toBe('yaml: line 3');
  });
});
