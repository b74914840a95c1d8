const TIMEOUT_MS = 60_000;

/** Sends a JSON request and returns the response; fails with the body of an error response. */
export async function requestJson(method: string, url: string, body?: unknown): Promise<unknown> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text.trim()}`);
  return text === '' ? undefined : (JSON.parse(text) as unknown);
}
