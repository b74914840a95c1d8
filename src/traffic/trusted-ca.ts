import type { ConfigMap } from '../api/objects/config-map.ts';
import { TRUST } from '../api/names.ts';
import { caRefText, othersOf, parseTrust } from '../api/trust.ts';
import type { CaRef, MissingCa, Trust, TrustedCa } from '../api/trust.ts';
import { MAX_TLS_BYTES } from './upstream-tls.ts';
import type { ReadCaBundle } from './upstream-tls.ts';

/** The certificates that a ConfigMap has for a caRef; undefined if there is no such ConfigMap. */
export function caInConfigMap(
  configMap: Pick<ConfigMap, 'data'> | undefined,
  ref: CaRef,
  readCaBundle: ReadCaBundle,
): TrustedCa {
  const { namespace, name, key } = ref;
  const named = `ConfigMap ${namespace}/${name}`;
  if (!configMap) {
    return missing('CertificateNotFound', `${named} does not exist`, 'create it, or correct tls.caRef');
  }
  const { data } = configMap;
  const text = data[key];
  if (text === undefined) {
    const keys = Object.keys(data).slice(0, MAX_KEYS).join(', ');
    return missing(
      'CertificateNotFound',
      `${named} has no key ${key} with text (it has ${keys || 'none'})`,
      'add it, or correct tls.caRef.key',
    );
  }
  if (text.length > MAX_TLS_BYTES) {
    const most = `${MAX_TLS_BYTES / 1024} KB`;
    return missing('TooManyTlsSettings', `key ${key} of ${named} exceeds ${most}`, 'use fewer certificates');
  }
  const bundle = readCaBundle(text);
  if (bundle.is === 'valid') return { is: 'found', pem: bundle.pem };
  return missing(
    'InvalidCertificate',
    `key ${key} of ${named} cannot be read: ${bundle.why}`,
    'write whole PEM certificates, each from its BEGIN line to its END line',
  );
}

const MAX_KEYS = 5;

function missing(reason: MissingCa['reason'], text: string, fix: string): MissingCa {
  return { is: 'missing', reason, why: { text, fix } };
}

/** Reads what is published in a ConfigMap `mesh-trust`, which is parsed once. */
export function cachedTrust(): (configMap: ConfigMap | undefined, ref: CaRef) => TrustedCa {
  const parsed = new WeakMap<ConfigMap, Trust>();
  return (configMap, ref) => {
    const trust = configMap && (parsed.get(configMap) ?? parseTrust(configMap.data));
    if (configMap && trust) parsed.set(configMap, trust);
    const { namespace, name } = ref;
    const text = `the operator has not read ConfigMap ${namespace}/${name} into ConfigMap ${TRUST.configMap} of its namespace yet`;
    const why = { text, fix: 'see its log if this lasts' };
    const published = trust?.get(caRefText(ref)) ?? trust?.get(othersOf(namespace));
    return published ?? { is: 'unread', reason: 'CertificateNotFound', why };
  };
}
