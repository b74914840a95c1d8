/** The library: the kinds, their types and their validators. */
export { formatFault } from './api/fault.ts';
export type { Fault } from './api/fault.ts';
export { API_VERSION, GROUP, kinds, VERSION } from './api/generated/kinds.ts';
export type { KindName } from './api/generated/kinds.ts';
export type * as authored from './api/generated/authored.ts';
export type * from './api/generated/types.ts';
export { unknownFields } from './api/unknown-fields.ts';
export type { UnknownField } from './api/unknown-fields.ts';
export { validate } from './api/validate.ts';
export type { Verdict } from './api/validate.ts';
