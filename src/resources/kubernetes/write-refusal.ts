import type { KubeError } from './kube-error.ts';

/** Whether a server will never do what it was asked, unless somebody changes something. */
export function isRefusal(failure: KubeError): boolean {
  switch (failure.reason) {
    case 'Invalid':
    case 'Forbidden':
      return true;
    case 'Failed':
      return isUntypable(failure);
    case 'NotFound':
    case 'Unauthorized':
    case 'Conflict':
    case 'Expired':
    case 'Busy':
    case 'Unreachable':
    case 'Garbled':
    case 'Aborted':
      return false;
  }
}

/** An API server takes a field that it does not know, or that has a wrong type, for a failure of its own. */
function isUntypable({ status, message }: KubeError): boolean {
  return status === 500 && message.includes('failed to create typed patch object');
}
