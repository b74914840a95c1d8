import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatServices, MAX_SERVED, parseServices } from '../../src/api/served-services.ts';
import type { IgnoredLines } from '../../src/api/relay-targets.ts';
import type { ServedService } from '../../src/api/served-services.ts';

const aService: fc.Arbitrary<ServedService> = fc.record({
  name: fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/).map(label => `svc:${label}`),
  port: fc.integer({ min: 1, max: 65_535 }),
  via: fc.constantFrom('mesh', 'direct'),
  target: fc.constantFrom('100.64.0.7:8080', '[fd7a:115c:a1e0::7]:443', '192.0.2.7:65535'),
  isAdvertised: fc.boolean(),
});

function parsed(text: string) {
  const ignored: IgnoredLines[] = [];
  return { services: parseServices(text, each => ignored.push(each)), ignored };
}

describe('VIP services in a ConfigMap', () => {
  it('are the same again after they were written and read', () => {
    const several = fc.uniqueArray(aService, { selector: ({ name }) => name, maxLength: 20 });
    fc.assert(
      fc.property(several, services => {
        const { services: read, ignored } = parsed(formatServices(services));
        expect(new Map(read.map(each => [each.name, each]))).toEqual(
          new Map(services.map(each => [each.name, each])),
        );
        expect(ignored).toEqual([]);
        expect(formatServices(read)).toBe(formatServices([...services].reverse()));
      }),
      { numRuns: 40 },
    );
  });

  it.each([
    ['a name without svc:', 'web 443 mesh 100.64.0.7:80 on'],
    ['a name with upper case', 'svc:Web 443 mesh 100.64.0.7:80 on'],
    ['a name with a path', 'svc:../x 443 mesh 100.64.0.7:80 on'],
    ['a port beyond 65535', 'svc:web 70000 mesh 100.64.0.7:80 on'],
    ['a host name', 'svc:web 443 direct example.com:80 on'],
    ['a unix socket', 'svc:web 443 direct unix:/var/run/x on'],
    ['no state', 'svc:web 443 mesh 100.64.0.7:80'],
    ['another way', 'svc:web 443 tun 100.64.0.7:80 on'],
  ])('without a line with %s', (_, line) => {
    const { services, ignored } = parsed(`${line}\nsvc:ok 1 mesh 100.64.0.7:80 off\n`);
    expect(services).toEqual([
      { name: 'svc:ok', port: 1, via: 'mesh', target: '100.64.0.7:80', isAdvertised: false },
    ]);
    expect(ignored).toEqual([{ count: 1, first: 'line 1 is not a VIP service' }]);
  });

  it('have each name once, and an end', () => {
    const line = 'svc:web 443 mesh 100.64.0.7:80 on\n';
    expect(parsed(line + line).ignored).toEqual([{ count: 1, first: 'line 2 repeats a name' }]);
    const many = Array.from({ length: MAX_SERVED + 1 }, (_, index) => line.replace('web', `web-${index}`));
    const { services, ignored } = parsed(many.join(''));
    expect([services.length, ignored[0]?.first]).toEqual([1000, 'line 1001 is beyond 1000 services']);
  });
});
