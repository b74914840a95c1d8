import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** Private words of earlier versions, and those of Kubernetes, Envoy and Node to use instead. */
const INSTEAD: readonly (readonly [refused: RegExp, instead: string])[] = [
  [/\b[Ww]ish|[a-z]Wish/, 'options (what a caller chooses), or spec'],
  [/\b([Tt]ells|[Tt]old)\b|[a-z]Tells\b|\btells[A-Z]/, 'returns, reports, logs, writes or notifies'],
  [/\bwhat there is\b/i, 'existing'],
  [/\b(says?|said)\b|[a-z]Says\b/, 'returns, reports, shows, names, or has the reason'],
  [/\b(somebody|nobody|anybody)\b/i, 'the user, process, client or controller that is meant, or none'],
  [/\bof ours\b/i, 'unexpected error in <thing>; the name of what is meant'],
  [/\b(is|are|was|were|be) gone\b/, 'is deleted, does not exist'],
  [/\bso many\b/i, 'max concurrent, this number of'],
  [/\bgains\b/i, 'acquires, achieves, counts'],
  [/\bstrives?\b/i, 'runs leader election'],
  [/\bshel(f|ves)\b/i, 'kind store'],
  [/\b(owes?|greets)\b/i, 'enqueues; sends the initial response'],
  [/\b(forbearance|patience|troubled)\b/i, 'timeout, rate limit, backoff; failing'],
  [/\bmeaningOf\b/, 'resolve'],
  [/\b(in vain|inVain|anew)\b/i, 'without success, timed out; again'],
  [/\bafter (its|the) last byte\b/i, 'is detected after 25 s'],
];

/** Sources in Go are left out: a part is built again when one of its comments changes. */
const FILES = ['src', 'schema', 'synth', 'codegen', 'lab', 'bench', 'docs', 'test', 'examples']
  .flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(path => `${folder}/${path}`),
  )
  .filter(path => /\.ts$|^schema\/.*\.json$|^docs\/.*\.md$/.test(path))
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
  '/** A message that says what is valid. */',
  'const path = pathAsTheServerSays(fault);',
  'causes.filter(tellsThatRulesWereSkipped)',
  "it('a pool has no pods of ours', run);",
  "log.info('the device is gone');",
  '// After so many restarts a pod crashes.',
  '// An owner of the tag gains nothing else.',
  'A watch ends about 25 s after its last byte.',
])('finds them in %j', line => {
  expect(INSTEAD.some(([word]) => word.test(line))).toBe(true);
});

it.each([
  'a wider switch',
  'greeting: hello',
  'has the shell flow',
  "callGrpc('/Echo/Say')",
  'may gain privileges',
  'tell two ports apart',
])('leaves %j alone', line => {
  expect(INSTEAD.filter(([word]) => word.test(line))).toEqual([]);
});
