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

Prints a script with which a shell completes commands, their flags, and names of files.

Examples:
  source <(mesh-gateway completion bash)       # in ~/.bashrc
  source <(mesh-gateway completion zsh)        # in ~/.zshrc, after compinit
  mesh-gateway completion fish | source        # in ~/.config/fish/config.fish

Exit status: 0 the script is printed, 2 wrong usage.
`;

/** Runs `mesh-gateway completion`; returns the exit code. */
export function runCompletion(args: readonly string[], commands: readonly CompletedCommand[]): number {
  const [name, ...more] = args;
  const shell = SHELLS.find(each => each === name);
  if (shell === undefined || more.length > 0)
    throw new Error(`completion: name one shell: ${SHELLS.join(', ')}`);
  console.log(scriptFor(shell, commands));
  return 0;
}

/** The flags in a help, sorted. */
function flagsIn(help: string): readonly string[] {
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
