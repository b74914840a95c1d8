/** What completion needs of a command. */
export type CompletedCommand = {
  readonly name: string;
  readonly summary: string;
  /** With the flags that it takes. */
  readonly help: string;
};

/** The shells for which there are scripts. */
const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** What `mesh-gateway help completion` prints. */
export const COMPLETION_HELP = `mesh-gateway completion bash|zsh|fish
mesh-gateway completion kubectl WORD...

Prints a script with which a shell completes commands, their flags, and names of
files. With kubectl it prints the candidates for the last of the words after
kubectl mesh: the file kubectl_complete-mesh of the package runs it, so that the
completion of kubectl has them.

Examples:
  source <(mesh-gateway completion bash)       # in ~/.bashrc
  source <(mesh-gateway completion zsh)        # in ~/.zshrc, after compinit
  mesh-gateway completion fish | source        # in ~/.config/fish/config.fish

Exit status: 0 the script is printed, 2 wrong usage.
`;

/** Runs `mesh-gateway completion`; returns the exit code. */
export function runCompletion(args: readonly string[], commands: readonly CompletedCommand[]): number {
  const [name, ...more] = args;
  if (name === 'kubectl') {
    console.log(candidatesFor(more, commands).join('\n'));
    return 0;
  }
  const shell = SHELLS.find(each => each === name);
  if (shell === undefined || more.length > 0)
    throw new Error(`completion: name one shell: ${SHELLS.join(', ')}`);
  console.log(scriptFor(shell, commands));
  return 0;
}

/** The numbers by which cobra, kubectl's library, knows whether names of files are candidates, too. */
const DIRECTIVES = { withFiles: ':0', withoutFiles: ':4' } as const;

/** What kubectl reads: candidates for the last word, some with a summary after a tab, and a directive. */
function candidatesFor(words: readonly string[], commands: readonly CompletedCommand[]): readonly string[] {
  const current = words.at(-1) ?? '';
  const names = commands.map(({ name, summary }) => `${name}\t${summary}`);
  const those = (all: readonly string[]) => [
    ...all.filter(candidate => candidate.startsWith(current)),
    DIRECTIVES.withoutFiles,
  ];
  if (words.length < 2)
    return those([...names, 'help\tprint the help of a command', 'version\tprint the version']);
  if (words[0] === 'help') return those(words.length === 2 ? names : []);
  if (!current.startsWith('-')) return [DIRECTIVES.withFiles];
  return those(flagsIn(commands.find(({ name }) => name === words[0])?.help ?? ''));
}

/** The flags in a help, sorted. */
export function flagsIn(help: string): readonly string[] {
  return [...new Set(help.match(/(?<![\w-])--[a-z][a-z-]*/g))].sort();
}

function scriptFor(shell: (typeof SHELLS)[number], commands: readonly CompletedCommand[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands);
    case 'zsh':
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
    case 'fish':
      return fishScript(commands);
  }
}

/** Without an answer, bash completes names of files. */
function bashScript(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ name, help }) => `    ${name}) candidates='${flagsIn(help).join(' ')}' ;;`);
  return `_mesh_gateway() {
  local current=\${COMP_WORDS[COMP_CWORD]} candidates=''
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
    help) candidates='${commands.map(({ name }) => name).join(' ')}' ;;
  esac
  if [[ $COMP_CWORD -eq 1 ]]; then
    candidates='${[...commands.map(({ name }) => name), 'help', 'version'].join(' ')}'
  elif [[ $current != -* && \${COMP_WORDS[1]} != help ]]; then
    candidates=''
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _mesh_gateway mesh-gateway kubectl-mesh`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", String.raw`\'`)}'`;
  return commands
    .flatMap(({ name, summary, help }) => [
      `complete -c mesh-gateway -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ...flagsIn(help).map(
        flag => `complete -c mesh-gateway -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}`,
      ),
    ])
    .join('\n');
}
