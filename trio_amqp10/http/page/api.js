// Requests to the server: one place that knows whether it answers.

const TIMEOUT = 30000;

/** A request that was refused; `message` is a sentence for the reader. */
export class Refused extends Error {
  constructor(status, reason) {
    super(status === 403 ? `You have no permission for this: ${reason}` : reason);
    this.status = status;
  }
}

/** The server does not answer. */
export class Away extends Error {}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(location.origin + path, { ...options, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  } catch (fault) {
    throw new Away(String(fault));
  }
  let found = null;
  try {
    found = await answer.json();
  } catch (fault) {
    if (answer.ok) throw new Away(String(fault));
  }
  if (answer.ok) return found;
  throw new Refused(answer.status, found?.reason ?? `the server answers with status ${answer.status}`);
}

/** Read from a path of the API, with a query. */
export function get(path, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ""));
  return ask(`/api/${path}?${asked}`, {});
}

/** Ask for an operation of the page. */
export function post(operation, body) {
  return ask(`/api/amqp10/${operation}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}
