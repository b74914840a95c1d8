import { formatProblem, formatWithExample, severityOf } from '../../api/problem.ts';
import { outputJson, problemJson } from '../json.ts';
import { jsonText, plainText } from '../plain-text.ts';
import { fitting, painted } from '../terminal.ts';
import type { Look } from '../terminal.ts';
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
  look: Look,
): string {
  switch (output) {
    case 'text':
      return textOf(findings, files, look);
    case 'json':
      return outputJson({ problems: findings.map(problemJson) });
    case 'sarif':
      return jsonText(sarifOf(findings));
    case 'github':
      return findings.map(annotationOf).join('\n');
  }
}

/** Each with the line that it is about, and a mark below its column; on a terminal its fix is on a line of its own. */
function textOf(findings: readonly Finding[], files: readonly SourceFile[], look: Look): string {
  const lines = new Map(files.map(({ name, text }) => [name, text.split('\n')]));
  const mayShow = excerptGuard(files);
  return findings.flatMap(finding => linesOf(finding, look, excerptIn(finding))).join('\n');

  function excerptIn(finding: Finding): readonly string[] {
    if (finding.file === undefined) return [];
    const { file, line, column } = finding;
    const text = lines.get(file)?.[line - 1];
    return text !== undefined && mayShow(finding, text) ? excerptOf(text, line, column, look) : [];
  }
}

const INDENT = 4;

function linesOf(finding: Finding, look: Look, excerpt: readonly string[]): readonly string[] {
  const { fix, example, reason, ...rest } = finding;
  const object = objectOf(finding);
  const place =
    finding.file === undefined
      ? object === undefined
        ? ''
        : `${object}: `
      : `${finding.file}:${finding.line}:${finding.column}: `;
  const severity = severityOf(finding);
  const isApart = look.columns !== undefined && fix !== undefined;
  const message = formatProblem({ ...rest, ...(!isApart && fix !== undefined && { fix }) });
  const title = `${painted(`${severity}:`, severity, look)} ${plainText(message)} [${reason}]`;
  return [
    ...fitting(`${plainText(place)}${title}`, INDENT, look),
    ...excerpt,
    ...(isApart ? fitting(`    ${painted('fix:', 'fix', look)} ${plainText(fix)}`, 2 * INDENT, look) : []),
    ...(example === undefined ? [] : ['', ...plainText(example).split('\n')]),
  ];
}

const MAX_EXCERPT = 120;

/** A line that a terminal would wrap is left out: the mark would be below something else. */
function excerptOf(text: string, line: number, column: number, { columns }: Look): readonly string[] {
  const number = String(line).padStart(5);
  if (text.length > MAX_EXCERPT || number.length + 3 + text.length > (columns ?? Infinity)) return [];
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
