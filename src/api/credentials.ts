/** What keys and tokens of control servers begin with, and passwords before a host; the digest of an image is none. */
const CREDENTIAL = /\b(tskey|hskey)-|:[^\s:/@]*@(?!sha\d+:)/;

/** Whether a text is, or contains, a credential that must never be shown. */
export function isCredential(text: string): boolean {
  return CREDENTIAL.test(text);
}

/** Whether a field by its name holds a credential, such as clientSecret and authKey; the ID of a client is a part of one. */
export function isCredentialField(name: string): boolean {
  return /(secret|token|password|client_?-?id|(auth|api|access|join)_?-?key)$/i.test(name);
}
