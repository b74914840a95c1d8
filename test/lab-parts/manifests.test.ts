import { describe, expect, it } from 'vitest';
import { parseManifests } from '../../lab/kube/manifests.ts';

describe('manifests', () => {
  it('are read one by one, without empty documents', () => {
    const text = '# first\n---\nkind: A\napiVersion: v1\n---\n---\nkind: B\napiVersion: v1\n';
    expect(parseManifests(text, 'a.yaml').map(({ kind }) => kind)).toEqual(['A', 'B']);
  });

  it('are taken out of lists', () => {
    const text = 'kind: List\napiVersion: v1\nitems: [{kind: A, apiVersion: v1}, {kind: B, apiVersion: v1}]';
    expect(parseManifests(text, 'a.yaml').map(({ kind }) => kind)).toEqual(['A', 'B']);
  });

  it.each([
    ['0644', 420],
    ['on', true],
    ['"on"', 'on'],
    ['12:30', '12:30'],
    ['2026-01-31', '2026-01-31'],
    ['1.5', 1.5],
  ])('parse %s as kubectl does', (text, meant) => {
    expect(parseManifests(`{kind: A, apiVersion: v1, data: ${text}}`, 'a.yaml')).toMatchObject([
      { data: meant },
    ]);
  });

  it.each([
    ['kind: [', /^a.yaml: /],
    ['just words', 'a.yaml: a document is not an object of a cluster'],
    ['kind: A', 'a.yaml: a document is not an object of a cluster'],
  ])('that are %j are refused by the name of their file', (text, message) => {
    expect(() => parseManifests(text, 'a.yaml')).toThrow(message);
  });
});
