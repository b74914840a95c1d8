import { formatWithExample, severityOf } from '../../api/problem.ts';
import { outputJson, problemJson } from '../json.ts';
import { jsonText, plainText } from '../plain-text.ts';
import { excerptGuard } from './hidden.ts';
import { objectOf } from './objects.ts';
import type { Finding, SourceFile } from './objects.ts';

/** The forms of output. */
export const OUTPUTS = ['text', 'json', 'sarif', 'github'] as const;

/** A form of output. */
export type Output = (typeof OUTPUTS)[number];

/** Findings in a form of output. */
export function formatFindings(
  output: Output,
  findings: readonly Finding[],
  files: readonly SourceFile[],
): string {
  switch (output) {
    case 'text':
      return textOf(findings, files);
    case 'json':
      return outputJson({ problems: findings.map(problemJson) });
    case 'sarif':
      return jsonText(sarifOf(findings));
    case 'github':
      return findings.map(annotationOf).join('\n');
  }
}

/** Each with the line that it is about, and a mark below its column. */
function textOf(findings: readonly Finding[], files: readonly SourceFile[]): string {
  const lines = new Map(files.map(({ name, text }) => [name, text.split('\n')]));
  const mayShow = excerptGuard(files);
  return findings
    .map(finding => {
      const { reason } = finding;
      const [severity, object] = [severityOf(finding), objectOf(finding)];
      const [first = '', ...rest] = plainText(formatWithExample(finding)).split('\n');
      if (finding.file === undefined) {
        const subject = object === undefined ? '' : `${object}: `;
        return [`${subject}${severity}: ${first} [${reason}]`, ...rest].join('\n');
      }
      const { file, line, column } = finding;
      const title = `${file}:${line}:${column}: ${severity}: ${first} [${reason}]`;
      const text = lines.get(file)?.[line - 1];
      const isShown = text !== undefined && mayShow(finding, text);
      return [title, ...(isShown ? excerptOf(text, line, column) : []), ...rest].join('\n');
    })
    .join('\n');
}

const MAX_EXCERPT = 120;

function excerptOf(text: string, line: number, column: number): readonly string[] {
  if (text.length > MAX_EXCERPT) return [];
  const number = String(line).padStart(5);
  const shown = plainText(text.trimEnd().replaceAll('\t', ' '));
  return [`${number} | ${shown}`, `${' '.repeat(number.length)} | ${' '.repeat(column - 1)}^`];
}

const LEVELS = { error: 'error', warning: 'warning', note: 'note', unknown: 'note' } as const;

/** SARIF 2.1.0, which code scanning tools read. */
function sarifOf(findings: readonly Finding[]): object {
  const rules = [...new Set(findings.map(({ reason }) => reason))].map(id => ({ id }));
  const results = findings.map(finding => ({
    ruleId: finding.reason,
    level: LEVELS[severityOf(finding)],
    message: { text: textWithObject(finding) },
    ...(finding.file !== undefined && {
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: encodeURI(finding.file) },
            region: { startLine: finding.line, startColumn: finding.column },
          },
        },
      ],
    }),
  }));
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver: { name: 'mesh-gateway', rules } }, results }],
  };
}

const COMMANDS = { error: 'error', warning: 'warning', note: 'notice', unknown: 'notice' } as const;

/** A workflow command of GitHub Actions, which shows the finding in the diff. */
function annotationOf(finding: Finding): string {
  const place =
    finding.file === undefined
      ? ''
      : `file=${escaped(finding.file)},line=${finding.line},col=${finding.column},`;
  return `::${COMMANDS[severityOf(finding)]} ${place}title=${finding.reason}::${escapedText(textWithObject(finding))}`;
}

/** Where no file shows what the message is about. */
function textWithObject(finding: Finding): string {
  const [object, message] = [objectOf(finding), formatWithExample(finding)];
  return finding.file === undefined && object !== undefined ? `${object}: ${message}` : message;
}

function escapedText(text: string): string {
  return plainText(text).replaceAll('%', '%25').replaceAll('\n', '%0A');
}

function escaped(property: string): string {
  return escapedText(property).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
