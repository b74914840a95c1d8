import { _, Name, stringify } from 'ajv';
import { usePattern } from 'ajv/dist/vocabularies/code.js';
import type { Ajv, Code, CodeKeywordDefinition, KeywordErrorDefinition } from 'ajv';

/** The functions that generated structure modules call. */
export const STRUCTURE_FUNCTIONS = ['codePoints', 'duplicates', 'isTime', 'withError'] as const;

/**
 * Keywords that ajv lacks or has in a form that needs ajv or the schema at run time: `enum` compares with each value;
 * maxLength and minLength count code points, as the API server does, and inspect the text only where its length in UTF-16
 * does not decide it; a pattern is not tried on a text that is too long in any case, as expressions have their own limits;
 * `unique` finds repeated items of lists of type map and set; `time` requires a time that exists.
 */
export function addStructureKeywords(ajv: Ajv): void {
  for (const definition of [choice, maxLength, minLength, pattern, time, unique]) {
    ajv.removeKeyword(definition.keyword as string);
    ajv.addKeyword(definition);
  }
}

const codePoints = new Name('codePoints');
const duplicates = new Name('duplicates');
const isTime = new Name('isTime');

const choice: CodeKeywordDefinition = {
  keyword: 'enum',
  schemaType: 'array',
  code: cxt => {
    const others = (cxt.schema as readonly string[]).map(value => _`${cxt.data} !== ${value}`);
    cxt.fail(others.reduce((left, right) => _`${left} && ${right}`));
  },
};

const maxLength: CodeKeywordDefinition = {
  keyword: 'maxLength',
  type: 'string',
  schemaType: 'number',
  error: limitError(),
  code: cxt => {
    const { data, schemaCode } = cxt;
    cxt.fail(_`${data}.length > ${schemaCode} && ${codePoints}(${data}) > ${schemaCode}`);
  },
};

const minLength: CodeKeywordDefinition = {
  keyword: 'minLength',
  type: 'string',
  schemaType: 'number',
  error: limitError(),
  code: cxt => {
    cxt.fail(_`${codePoints}(${cxt.data}) < ${cxt.schemaCode}`);
  },
};

const pattern: CodeKeywordDefinition = {
  keyword: 'pattern',
  type: 'string',
  schemaType: 'string',
  code: cxt => {
    const { data, parentSchema } = cxt;
    const expression = usePattern(cxt, cxt.schema as string);
    const most: unknown = (parentSchema as { maxLength?: unknown }).maxLength;
    const isShort = typeof most === 'number' ? _`${data}.length <= ${2 * most} && ` : _``;
    cxt.fail(_`${isShort}!${expression}.test(${data})`);
  },
};

const time: CodeKeywordDefinition = {
  keyword: 'time',
  type: 'string',
  schemaType: 'boolean',
  code: cxt => {
    cxt.fail(_`!${isTime}(${cxt.data})`);
  },
};

const unique: CodeKeywordDefinition = {
  keyword: 'unique',
  type: 'array',
  schemaType: 'array',
  error: { message: 'has duplicates', params: ({ params }) => _`{duplicates: ${params['found']}}` },
  code: cxt => {
    const found = cxt.gen.const('found', _`${duplicates}(${cxt.data}, ${stringify(cxt.schema)})`);
    cxt.setParams({ found });
    cxt.fail(_`${found}.length > 0`);
  },
};

function limitError(): KeywordErrorDefinition {
  return { message: 'has a wrong length', params: ({ schemaCode }): Code => _`{limit: ${schemaCode}}` };
}
