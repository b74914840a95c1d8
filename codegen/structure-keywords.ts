import { _, Name } from 'ajv';
import type { Ajv, Code, CodeKeywordDefinition, KeywordErrorDefinition } from 'ajv';

/** The functions that generated structure modules call. */
export const STRUCTURE_FUNCTIONS = ['codePoints', 'duplicates', 'isTime'] as const;

/**
 * Keywords that ajv lacks or has in a form that needs ajv at run time: maxLength and minLength count code points, as
 * the API server does, and look at the text only where its length in UTF-16 leaves that open; `unique` finds
 * repeated items of lists of type map and set; `time` asks for a time that exists.
 */
export function addStructureKeywords(ajv: Ajv): void {
  for (const definition of [maxLength, minLength, time, unique]) {
    ajv.removeKeyword(definition.keyword as string);
    ajv.addKeyword(definition);
  }
}

const codePoints = new Name('codePoints');
const duplicates = new Name('duplicates');
const isTime = new Name('isTime');

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
    const found = cxt.gen.const('found', _`${duplicates}(${cxt.data}, ${cxt.schemaCode})`);
    cxt.setParams({ found });
    cxt.fail(_`${found}.length > 0`);
  },
};

function limitError(): KeywordErrorDefinition {
  return { message: 'has a wrong length', params: ({ schemaCode }): Code => _`{limit: ${schemaCode}}` };
}
