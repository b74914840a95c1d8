import { join } from 'node:path';
import ts from 'typescript';

/** The compiler options of users with strict checks. */
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  types: [],
  paths: { 'mesh-gateway': [join(process.cwd(), 'src/index.ts')] },
};

/** Compiles modules that import the library as users do; returns the errors of each, empty if it compiles. */
export function compile(modules: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const texts = new Map(Object.entries(modules).map(([name, text]) => [pathOf(name), text]));
  const host = ts.createCompilerHost(OPTIONS);
  const disk = ts.createCompilerHost(OPTIONS);
  host.fileExists = path => texts.has(path) || disk.fileExists(path);
  host.readFile = path => texts.get(path) ?? disk.readFile(path);
  host.getSourceFile = (path, options, ...rest) => {
    const text = texts.get(path);
    if (text === undefined) return disk.getSourceFile(path, options, ...rest);
    return ts.createSourceFile(path, text, options);
  };
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  return new Map(Object.keys(modules).map(name => [name, errorsOf(program, pathOf(name))]));
}

function errorsOf(program: ts.Program, path: string): string {
  const file = program.getSourceFile(path);
  return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    .join('\n');
}

/** Beside the tests, so that packages resolve as from there; a .mts file is an ES module whatever package.json has. */
function pathOf(name: string): string {
  return join(process.cwd(), 'test/routes', `${name}.mts`).replaceAll('\\', '/');
}
