import { Document, visit } from 'yaml';
import type { OneOrMore } from './route.ts';

/**
 * The YAML of an object, or of a list of objects as documents of one file. Readers of YAML 1.1, such as kubectl, and of 1.2 read
 * the same values from it.
 */
export function toYaml(objects: OneOrMore<object>): string {
  const list: readonly object[] = Array.isArray(objects) ? objects : [objects];
  return list.map(documentOf).join('---\n');
}

function documentOf(object: object): string {
  const document = new Document(object, { version: '1.1', aliasDuplicateObjects: false });
  // A text in 1.1, and an octal number in 1.2.
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value.startsWith('0o')) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0, directives: false });
}
