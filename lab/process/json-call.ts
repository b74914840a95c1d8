const TIMEOUT_MS = 60_000;

/** Calls an endpoint that speaks JSON and gives its answer; a refusal becomes an error with what the endpoint said. */
export async function callJson(method: string, url: string, body?: unknown): Promise<unknown> {
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
