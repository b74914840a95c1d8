import tseslint from 'typescript-eslint';

const GENERATED = ['src/api/generated', 'src/extension/proto', 'synth/generated'].map(
  folder => `${folder}/**/*.ts`,
);

/** Rules about correctness only: how code looks is the formatter's business. */
export default tseslint.config(
  // Examples are written as users do, against the package as it is packed: a test compiles them.
  {
    ignores: ['dist/', 'examples/', '.cache/', 'test/golden/'],
  },
  // No rule is about them. They are not ignored, which is a warning where a commit's files are named on the command line.
  {
    files: GENERATED,
    languageOptions: { parser: tseslint.parser },
    linterOptions: { reportUnusedDisableDirectives: 'off' },
  },
  {
    files: ['**/*.ts'],
    ignores: GENERATED,
    extends: [tseslint.configs.strictTypeCheckedOnly],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-constant-condition': 'error',
      'no-fallthrough': 'error',
      'no-self-compare': 'error',
      'no-template-curly-in-string': 'error',
      'no-unreachable-loop': 'error',
      'no-unsafe-finally': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'require-atomic-updates': 'error',
      'use-isnan': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // Ports are interfaces whose methods stand alone; a type that is a function never has a `this`.
      '@typescript-eslint/unbound-method': 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: GENERATED,
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ObjectExpression > SpreadElement > ObjectExpression',
          message: 'A literal is spread into a literal: list its fields.',
        },
      ],
    },
  },
);
