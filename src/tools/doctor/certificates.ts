import { X509Certificate } from 'node:crypto';
import type { Kinds } from '../../api/generated/types.ts';
import { endpointsOf } from '../../api/objects/endpoints.ts';
import { placeOf } from '../../api/objects/oldest.ts';
import { failed, mapAt, notChecked, ok } from './observed.ts';
import type { Line, Observed } from './observed.ts';

/** A CA bundle and where it is. */
type Bundle = { readonly place: string; readonly pem: string };

/** Whether the CA certificates that objects have in them, and those of the operator's ConfigMap, are still valid. */
export function checkCertificates({ declarations, trust, now }: Observed): readonly Line[] {
  const check = 'cas';
  const bundles: readonly Bundle[] = [
    ...declarations.objects.flatMap(({ resource }) => {
      if (resource?.kind === 'MeshTailnet') return ofTailnet(resource);
      return resource?.kind === 'MeshEndpoints' ? ofEndpoints(resource) : [];
    }),
    ...Object.entries(mapAt(trust.items?.[0], 'data')).map(([key, pem]) => ({
      place: `a ConfigMap that tls.caRef of MeshEndpoints names (${key.slice(0, 12)} in mesh-trust)`,
      pem,
    })),
  ];
  const read = bundles.map(bundle => ({ ...bundle, certificates: certificatesIn(bundle.pem) }));
  const lines = read.flatMap(({ place, certificates }) => {
    // One that is valid is enough: bundles keep old ones while authorities change.
    const isUsable = certificates.some(certificate => isValid(certificate, now));
    const [first] = certificates;
    if (isUsable || !first) return [];
    const since =
      Date.parse(first.validFrom) > now.getTime()
        ? `is not valid before ${first.validFrom}`
        : `has expired on ${first.validTo}`;
    return [
      failed(
        check,
        `the CA certificate of ${place} ${since}`,
        'replace it by one of the authority that is valid now',
      ),
    ];
  });
  if (lines.length > 0) return lines;
  if (trust.why !== undefined) return [notChecked(check, trust.why)];
  const count = read.reduce((sum, { certificates }) => sum + certificates.length, 0);
  return [
    ok(check, count === 0 ? 'no CA certificates of your own are used' : `${count} CA certificates are valid`),
  ];
}

function ofTailnet({ metadata, spec }: Kinds['MeshTailnet']): readonly Bundle[] {
  const pem = spec.controlCA?.ca;
  return pem === undefined ? [] : [{ place: `spec.controlCA.ca of MeshTailnet ${metadata.name}`, pem }];
}

function ofEndpoints(object: Kinds['MeshEndpoints']): readonly Bundle[] {
  const title = `MeshEndpoints ${placeOf(object)}`;
  return endpointsOf(object).flatMap(({ name, tls }) =>
    tls?.ca === undefined ? [] : [{ place: `endpoint ${name} of ${title}`, pem: tls.ca }],
  );
}

function isValid({ validFrom, validTo }: X509Certificate, now: Date): boolean {
  return Date.parse(validFrom) <= now.getTime() && now.getTime() <= Date.parse(validTo);
}

/** What is not a certificate is reported by the operator. */
function certificatesIn(text: string): readonly X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap(block => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}
