// @ts-check
// Jobs of a Shoal gateway, for web pages and for anything else that has fetch: submit, wait as the gateway's hints say,
// and try again without ever making a second job. No build step, no dependencies; the types are in shoal.d.ts.

/** @typedef {import("./shoal.d.ts").Job} Job */
/** @typedef {import("./shoal.d.ts").Options} Options */
/** @typedef {import("./shoal.d.ts").ProblemDocument} ProblemDocument */
/** @typedef {import("./shoal.d.ts").RecordOfItem} RecordOfItem */
/** @typedef {import("./shoal.d.ts").Trying} Trying */
/** @typedef {import("./shoal.d.ts").Waiting} Waiting */

/** Seconds that an answer may be held back until there is news. */
const LONG_POLL = 25;
/** Seconds that an answer may take besides. */
const ANSWER_WITHIN = 15;
/** Seconds between two tries, where nobody says how long to wait. */
const FIRST_PAUSE = 0.5;
const LONGEST_PAUSE = 5;
/** Not now: the gateway is busy or its store away, or the proxy in front of it finds none. */
const TRY_AGAIN = new Set([429, 502, 503, 504]);

/** The gateway will not do what it was asked for. The message is a sentence for people. */
export class Problem extends Error {
  /**
   * @param {number} status of HTTP
   * @param {ProblemDocument} document as in RFC 9457
   */
  constructor(status, document) {
    super(document.detail);
    this.name = "Problem";
    this.status = status;
    this.document = document;
    this.title = document.title;
    this.detail = document.detail;
    /** A word for programs, such as `bad-input`. */
    this.kind = String(document.type ?? "").split(":").pop() ?? "";
  }
}

/** The job has ended, and is not complete. */
export class JobFailed extends Error {
  /** @param {Job} job */
  constructor(job) {
    super(job.error ?? (job.status === "cancelled" ? "The job has been cancelled." : "The job has failed."));
    this.name = "JobFailed";
    this.job = job;
  }
}

/** Nobody answered, or only "not now", for as long as patience lasted. */
export class Unavailable extends Error {
  /** @param {string} reason */
  constructor(reason) {
    super(reason);
    this.name = "Unavailable";
  }
}

/** A gateway, as one page or program uses it. */
export class Shoal {
  /** @param {Options} [options] */
  constructor({ url = "", apiKey, patience = Infinity } = {}) {
    this._url = url.replace(/\/+$/, "");
    this._patience = patience;
    /** @type {Record<string, string>} */
    this._headers = { Accept: "application/json" };
    if (apiKey !== undefined) this._headers.Authorization = `Bearer ${apiKey}`;
  }

  /**
   * Submit a job. When this is done, the job is stored.
   * @param {string} scraper
   * @param {unknown} input
   * @param {Trying & {idempotencyKey?: string}} [options]
   * @returns {Promise<Job>}
   */
  async submit(scraper, input, { idempotencyKey = randomKey(), ...trying } = {}) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    const body = JSON.stringify({ scraper, input });
    return read(await this._ask({ method: "POST", path: "/jobs", headers, body }, trying));
  }

  /**
   * How a job stands now, with its results if it has ended.
   * @param {string} jobId
   * @param {Trying} [options]
   * @returns {Promise<Job>}
   */
  async result(jobId, options = {}) {
    return read(await this._ask({ path: `/results/${encodeURIComponent(jobId)}` }, options));
  }

  /**
   * End a job.
   * @param {string} jobId
   * @param {Trying} [options]
   * @returns {Promise<Job>}
   */
  async cancel(jobId, options = {}) {
    return read(await this._ask({ method: "DELETE", path: `/jobs/${encodeURIComponent(jobId)}` }, options));
  }

  /**
   * All items that a job has given so far, page by page.
   * @param {string} jobId
   * @param {Trying} [options]
   * @returns {AsyncGenerator<RecordOfItem, void, void>}
   */
  async *items(jobId, options = {}) {
    let cursor = 0;
    for (;;) {
      const path = `/jobs/${encodeURIComponent(jobId)}/items?cursor=${cursor}`;
      const page = await read(await this._ask({ path }, options));
      yield* page.items;
      if (page.next === null || page.items.length === 0) return;
      cursor = page.next;
    }
  }

  /**
   * The job when it is complete. Throws JobFailed if it fails or is cancelled.
   *
   * After news comes a hint: for so long the gateway is asked to answer only if the job ends. A job in the queue is then
   * news again, because of its place; of one that is worked on, the next change is. A gateway that does not let us wait
   * (it has no room, or is about to end) is left alone for as long as it says.
   * @param {string} jobId
   * @param {Waiting} [options]
   * @returns {Promise<Job>}
   */
  async wait(jobId, { onNews, ...trying } = {}) {
    /** @type {"now" | "end" | "change"} */
    let until = onNews ? "now" : "end";
    /** @type {Job | null} */
    let job = null;
    let tag = "";
    let hint = LONG_POLL;
    for (;;) {
      const asked = Date.now();
      const seconds = until === "now" ? 0 : until === "change" ? LONG_POLL : hint;
      const path = `/results/${encodeURIComponent(jobId)}?wait=${seconds}`;
      const response = await this._ask(
        { path, headers: until === "change" ? { "If-None-Match": tag } : {}, held: seconds },
        trying,
      );
      const fresh = response.status !== 304;
      let pause = retryAfter(response) ?? 1;
      if (fresh) {
        const now = /** @type {Job} */ (await read(response));
        job = now;
        tag = response.headers.get("ETag") ?? "";
        onNews?.(now);
        if (hasEnded(now)) {
          if (now.status !== "complete") throw new JobFailed(now);
          return now;
        }
        pause = now.poll_after ?? pause;
      }
      /** @type {boolean} */
      const news = until === "now" || (until === "change" && fresh);
      if (!news && Date.now() < asked + seconds * 1000) await sleep(pause, trying.signal);
      if (onNews) {
        hint = pause;
        until = news || job === null || job.status === "queued" ? "end" : "change";
      }
    }
  }

  /**
   * The answer, after as many tries as it takes.
   * @param {{method?: string, path: string, headers?: Record<string, string>, body?: string, held?: number}} request
   * @param {Trying} trying
   * @returns {Promise<Response>}
   */
  async _ask({ method = "GET", path, headers = {}, body, held = 0 }, { signal, onTrouble }) {
    let patientUntil = Infinity;
    for (let tries = 1; ; tries++) {
      let seconds = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(tries - 1, 10)) * (0.75 + Math.random() / 2);
      let reason = "";
      try {
        const response = await this._fetch(path, { method, headers, body }, held + ANSWER_WITHIN, signal);
        if (!TRY_AGAIN.has(response.status)) {
          if (tries > 1) onTrouble?.(null);
          if (!response.ok && response.status !== 304) throw await problemOf(response);
          return response;
        }
        seconds = Math.max(seconds, retryAfter(response) ?? 0);
        reason = (await problemOf(response)).message;
      } catch (error) {
        if (signal?.aborted || error instanceof Problem) throw error;
        reason = "The gateway does not answer.";
      }
      if (tries === 1) patientUntil = Date.now() + this._patience * 1000;
      if (Date.now() + seconds * 1000 > patientUntil) throw new Unavailable(reason);
      onTrouble?.({ reason, tries, seconds });
      await sleep(seconds, signal);
    }
  }

  /**
   * One try, with the whole body, within so many seconds.
   * @param {string} path
   * @param {{method: string, headers: Record<string, string>, body: string | undefined}} request
   * @param {number} seconds
   * @param {AbortSignal} [signal]
   * @returns {Promise<Response>}
   */
  async _fetch(path, { method, headers, body }, seconds, signal) {
    signal?.throwIfAborted();
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), seconds * 1000);
    const stop = () => ending.abort(signal?.reason);
    signal?.addEventListener("abort", stop);
    try {
      const response = await fetch(this._url + path, {
        method,
        headers: { ...this._headers, ...headers },
        body,
        cache: "no-store",
        signal: ending.signal,
      });
      const whole = response.status === 304 ? null : await response.arrayBuffer();
      return new Response(whole, response);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }
}

/**
 * Whether nothing more will come of a job.
 * @param {Job} job
 */
export function hasEnded(job) {
  return job.status !== "queued" && job.status !== "processing";
}

/** A key that nobody else has. (`crypto.randomUUID` is there for pages of https and localhost only.) */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {Response} response
 * @returns {Promise<any>}
 */
async function read(response) {
  try {
    return await response.json();
  } catch {
    const detail = "What answered there is not a gateway of Shoal; check the URL.";
    throw new Problem(response.status, { title: "Not a gateway", detail });
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Problem>}
 */
async function problemOf(response) {
  let said = {};
  if (/json/.test(response.headers.get("Content-Type") ?? "")) said = await response.json().catch(() => ({}));
  const detail = `The gateway answered ${response.status} ${response.statusText}`.trim() + ".";
  return new Problem(response.status, { title: response.statusText, detail, ...said });
}

/**
 * Seconds after which to come back, if the answer says so.
 * @param {Response} response
 */
function retryAfter(response) {
  const text = response.headers.get("Retry-After");
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

/**
 * @param {number} seconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
