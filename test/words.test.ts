import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** Private words of earlier versions, and those of Kubernetes, Envoy and Node to use instead. */
const INSTEAD: readonly (readonly [refused: RegExp, instead: string])[] = [
  [/\b[Ww]ish|[a-z]Wish/, 'options (what a caller chooses), or spec'],
  [/\b(tells|told)\b/i, 'returns, reports, logs, writes or notifies'],
  [/\b(somebody|nobody|anybody)\b/i, 'the user, process, client or controller that is meant, or none'],
  [/something of ours/i, 'unexpected error in <thing>, with fields'],
  [/\bstrives?\b/i, 'runs leader election'],
  [/\bshel(f|ves)\b/i, 'kind store'],
  [/\b(owes?|greets)\b/i, 'enqueues; sends the initial response'],
  [/\b(forbearance|patience|troubled)\b/i, 'timeout, rate limit, backoff; failing'],
  [/\bmeaningOf\b/, 'resolve'],
  [/\b(in vain|inVain|anew)\b/i, 'without success, timed out; again'],
];

/** Sources in Go are left out: a part is built again when one of its comments changes. */
const FILES = ['src', 'synth', 'codegen', 'lab', 'bench', 'docs', 'test', 'examples']
  .flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(path => `${folder}/${path}`),
  )
  .filter(path => /\.ts$|^docs\/.*\.md$/.test(path))
  .filter(path => !/\/(generated|proto|golden|node_modules|words\.test\.ts)(\/|$)/.test(path));

function privateWordsIn(path: string): readonly string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, index) =>
      INSTEAD.flatMap(([word, field]) => {
        const [found] = word.exec(line) ?? [];
        return found === undefined ? [] : [`${path}:${index + 1}: "${found}": write ${field}`];
      }),
    );
}

it('names, comments and pages use the words of Kubernetes, Envoy and Node', () => {
  expect(FILES.length).toBeGreaterThan(200);
  expect(FILES.flatMap(privateWordsIn)).toEqual([]);
});

it.each([
  'type Wish = {',
  'options: RouteWish,',
  '// Nobody is told what a controller owes.',
  "report('something of ours failed')",
])('finds them in %j', line => {
  expect(INSTEAD.some(([word]) => word.test(line))).toBe(true);
});

it.each(['a wider switch', 'greeting: hello', 'has the shell flow', 'tell two ports apart'])(
  'leaves %j alone',
  line => {
    expect(INSTEAD.filter(([word]) => word.test(line))).toEqual([]);
  },
);
