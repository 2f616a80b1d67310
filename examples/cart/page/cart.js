// @ts-check
// The page: what is in the form becomes a job, what is heard of the job is shown. How to ask is known by shoal.js.
import { JobFailed, Problem, Shoal } from "/static/shoal.js";

/** @typedef {import("/static/shoal.js").Job} Job */
/** @typedef {import("/static/shoal.js").Trouble} Trouble */
/** @typedef {{title: string, price: string, store: string, distance: string}} Product */

/** @param {string} id @returns {any} */
const part = (id) => document.getElementById(id);
const gateway = new Shoal();

/** The job that is shown: its id, once known, and how to stop asking for it. */
let current = { id: "", asking: new AbortController() };

/** Show exactly these of the parts that come and go. @param {string[]} ids */
function showOnly(...ids) {
  for (const id of ["work", "trouble", "failure", "results", "nothing-yet"]) part(id).hidden = !ids.includes(id);
}

/** @param {string} id @param {string} text */
function say(id, text) {
  if (part(id).textContent !== text) part(id).textContent = text;
}

/** @param {string} id @param {string} text what is wrong with the field; nothing = nothing is */
function mark(id, text) {
  say(`${id}-wrong`, text);
  part(id).toggleAttribute("aria-invalid", false);
  if (text) part(id).setAttribute("aria-invalid", "true");
}

/** What is in the form, or null if something is wrong with it, which is then said. */
function readForm() {
  const items = part("items").value.split(/[\n,]/).map((/** @type {string} */ line) => line.trim()).filter(Boolean);
  const zipcode = part("zipcode").value.trim();
  mark("items", items.length ? "" : "Write at least one thing.");
  mark("zipcode", /^[0-9]{5}$/.test(zipcode) ? "" : "A ZIP code has five digits.");
  const wrong = document.querySelector("[aria-invalid=true]");
  if (wrong instanceof HTMLElement) wrong.focus();
  return wrong ? null : { items: [...new Set(items)], zipcode };
}

/** @param {Job} job */
function showWork(job) {
  showOnly("work");
  const [done, all] = (job.progress?.match(/\d+/g) ?? []).map(Number);
  const bar = part("bar");
  if (job.status === "queued") {
    say("state", job.position ? `In the queue: place ${job.position}` : "In the queue");
    bar.removeAttribute("value");
  } else {
    say("state", job.progress ?? "Being worked on");
    bar.max = all || 1;
    bar.value = done || 0;
  }
  say("expect", job.estimated_time ? `About ${inWords(job.estimated_time)} to go.` : "");
}

/** @param {number} seconds */
function inWords(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return `${Math.round(seconds / 60)} minutes`;
}

/** @param {Trouble | null} trouble */
function showTrouble(trouble) {
  part("trouble").hidden = trouble === null;
  if (trouble) say("trouble", `${trouble.reason} Trying again in ${inWords(trouble.seconds)} …`);
}

/** @param {string} text */
function showFailure(text) {
  showOnly("failure");
  say("failure", text);
}

/** @param {string} template @returns {HTMLElement} */
function copyOf(template) {
  return part(template).content.firstElementChild.cloneNode(true);
}

/** @param {Job} job */
function showProducts(job) {
  const groups = /** @type {Record<string, Product[]>} */ (job.results ?? {});
  const shown = Object.entries(groups).map(([item, products]) => {
    const unread = job.errors?.find((error) => new URL(error.url).searchParams.get("q") === item);
    return itemWith(item, products, unread?.reason);
  });
  part("results").replaceChildren(...shown);
  showOnly("results");
  part("results").focus({ preventScroll: true });
}

/** @param {string} item @param {Product[]} products @param {string} [unread] why the search could not be read */
function itemWith(item, products, unread) {
  const article = copyOf("item");
  const find = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (article.querySelector(selector));
  find("h2").textContent = item;
  if (products.length) {
    const least = Math.min(...products.map(amount));
    find(".count").textContent = `${products.length} products`;
    find("ul").append(...products.map((product) => productCard(product, amount(product) === least)));
  } else {
    const note = document.createElement("p");
    note.className = unread ? "unread" : "empty";
    note.textContent = unread ? `This search could not be read (${unread}).` : "Nobody near you sells that.";
    find("ul").replaceWith(note);
  }
  return article;
}

/** @param {Product} product @param {boolean} cheapest */
function productCard(product, cheapest) {
  const card = copyOf("product");
  card.classList.toggle("cheapest", cheapest);
  /** @type {HTMLElement} */ (card.querySelector(".mark")).hidden = !cheapest;
  for (const name of /** @type {const} */ (["title", "price", "store", "distance"])) {
    /** @type {HTMLElement} */ (card.querySelector(`.${name}`)).textContent = product[name];
  }
  return card;
}

/** @param {Product} product */
function amount(product) {
  return Number(product.price.replace(/[^0-9.]/g, ""));
}

/** Stop asking for the job that is shown, and start to ask for another. @returns {AbortSignal} */
function turnTo() {
  current.asking.abort();
  current = { id: "", asking: new AbortController() };
  return current.asking.signal;
}

/**
 * Show a job until it has ended. The id is kept in the address, so that a page that is loaded again goes on.
 * @param {AbortSignal} signal
 * @param {() => Promise<Job>} begin
 */
async function follow(signal, begin) {
  const trying = { signal, onTrouble: showTrouble };
  try {
    const job = await begin();
    current.id = job.job_id;
    history.replaceState(null, "", `#${job.job_id}`);
    if (job.status === "queued") showWork(job);
    showProducts(await gateway.wait(job.job_id, { ...trying, onNews: showWork }));
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

/** @param {unknown} error */
function fail(error) {
  if (error instanceof Problem && error.kind === "bad-input") {
    for (const { field, problem } of error.document.errors ?? []) mark(field.split(".")[0], problem);
  }
  if (error instanceof JobFailed) showFailure(`It did not work: ${error.message}`);
  else if (error instanceof Problem) showFailure(error.detail);
  else throw error;
}

part("form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const cart = readForm();
  if (!cart) return;
  stop();
  const signal = turnTo();
  showOnly("work");
  say("state", "Submitting …");
  say("expect", "");
  part("bar").removeAttribute("value");
  follow(signal, () => gateway.submit("cart", cart, { signal, onTrouble: showTrouble }));
});

/** Nobody will look at it any more: the gateway need not go on with it, if it can be told. */
function stop() {
  if (current.id && !part("work").hidden) {
    gateway.cancel(current.id, { signal: AbortSignal.timeout(5000) }).catch(() => {});
  }
}

part("stop").addEventListener("click", () => {
  stop();
  turnTo();
  history.replaceState(null, "", location.pathname);
  showOnly("nothing-yet");
  part("items").focus();
});

if (location.hash.length > 1) {
  const id = location.hash.slice(1);
  const signal = turnTo();
  follow(signal, () => gateway.result(id, { signal, onTrouble: showTrouble }));
}
