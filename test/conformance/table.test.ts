import { expect, it } from 'vitest';
import { resultIn } from '../../lab/conformance/suite.ts';
import { tableOf, unexplainedIn } from '../../lab/conformance/table.ts';

it.each([
  [
    '\u0016--- PASS: Conformance/HTTPRouteWeight (3.21s)',
    { name: 'HTTPRouteWeight', passed: true, seconds: 3.21 },
  ],
  ['    --- FAIL: Conformance/UDPRoute (60.00s)', { name: 'UDPRoute', passed: false, seconds: 60 }],
  ['        --- PASS: Conformance/UDPRoute/Simple_UDP_request (13.76s)', undefined],
  ['--- SKIP: Conformance/UDPRoute (0.00s)', undefined],
  ['--- PASS: Conformance (233.10s)', undefined],
  ['=== RUN   Conformance/UDPRoute', undefined],
])('the result in the line %s of a log', (line, result) => {
  expect(resultIn(line)).toEqual(result);
});

const suiteTest = (name: string, ...features: string[]) => ({ name, features, provisional: false });

const RUN = {
  mode: 'mesh-endpoints',
  commit: 'c0ffee',
  tests: [
    suiteTest('HTTPRouteWeight', 'Gateway', 'HTTPRoute'),
    suiteTest('HTTPRouteCORS', 'Gateway', 'HTTPRoute', 'HTTPRouteCORS'),
    suiteTest('UDPRoute', 'Gateway', 'UDPRoute'),
    suiteTest('TLSRoute', 'Gateway', 'TLSRoute'),
  ],
  limits: { TLSRoute: 'its cause' },
  excluded: { HTTPRouteServiceTypes: 'it is about headless Services' },
  results: [
    { name: 'HTTPRouteWeight', passed: true, seconds: 2 },
    { name: 'HTTPRouteCORS', passed: false, seconds: 30 },
    { name: 'UDPRoute', passed: true, seconds: 1 },
  ],
  report: 'report.yaml',
  log: 'conformance.log',
} as const;

const BASELINE = `
apiVersion: gateway.networking.k8s.io/v1
kind: ConformanceReport
profiles:
  - name: GATEWAY-HTTP
    core: { result: success }
    extended: { failedTests: [HTTPRouteCORS], result: failure }
  - name: GATEWAY-UDP
    core: { failedTests: [UDPRoute], result: failure }
`;

it('is a table of core, extended and each feature, with what failed, differs and was excluded; a test without result has failed', () => {
  expect(tableOf(RUN, BASELINE)).toBe(`commit: c0ffee

               passed  failed
core                2       1
extended            0       1
Gateway             2       2
HTTPRoute           1       1
HTTPRouteCORS       0       1
TLSRoute            0       1
UDPRoute            1       0

failed: 2
  HTTPRouteCORS
  TLSRoute: its cause

different from Envoy Gateway alone: 2
  UDPRoute: passes here
  TLSRoute: fails here

excluded: 1
  HTTPRouteServiceTypes: it is about headless Services
`);
});

it('compares with nothing where there is no report of the baseline', () => {
  expect(tableOf(RUN, undefined)).not.toContain('different');
});

it('a failure is explained by a known cause, or where the baseline fails too', () => {
  expect(unexplainedIn({ ...RUN, limits: {} }, BASELINE)).toEqual(['TLSRoute']);
  expect(unexplainedIn(RUN, BASELINE)).toEqual([]);
  expect(unexplainedIn(RUN, undefined)).toEqual(['HTTPRouteCORS']);
});
