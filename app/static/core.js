// What every page uses: elements, requests to the server, addresses, number formats and small widgets.
// Model text is hostile: nothing in this folder writes HTML. Everything that is shown goes through `el` or textContent.

const PROPERTIES = ["value", "checked", "selected", "disabled", "hidden"];

// The children as one list, without null, undefined and false.
const flatten = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

// Create an element. Attributes: on... are listeners, `style` and `data` are objects, `class` is a text.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const pair of Object.entries(value)) element.style.setProperty(...pair);
    else if (name === "class") element.className = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (PROPERTIES.includes(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flatten(children));
  return element;
}

// Replace the children of an element.
export function put(parent, ...children) {
  parent.replaceChildren(...flatten(children));
  return parent;
}

// The pages and queries that are not offered here: a public dashboard writes nothing.
const fact = (name) => document.querySelector(`meta[name="reasoner-${name}"]`).content;
const CLOSED = fact("closed").split(" ");
export const isOffered = (name) => !CLOSED.includes(name);

// By field of a filter of rollouts: [its meaning, the values to choose from]; without values for a text or a number.
export const FILTERS = JSON.parse(fact("filters"));

// Send a query to the server; returns its reply. An Error has the server's message.
export async function ask(query, values = {}) {
  let response;
  try {
    response = await fetch(`/ask/${query}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values),
    });
  } catch {
    throw new Error("the server does not answer; is `reasoner app` still running?");
  }
  const reply = await response.json().catch(() => ({ error: `the server failed (${response.status}); its terminal says why` }));
  if (!response.ok) throw new Error(reply.error ?? `the server failed (${response.status})`);
  return reply;
}

// An `ask` for content of which only one is shown at a time. Replies may arrive in another order than they were asked for:
// a call that a later one has replaced returns undefined, also when it fails.
export function latestOnly() {
  let calls = 0;
  return async (query, values) => {
    const call = calls += 1;
    try {
      const reply = await ask(query, values);
      return call === calls ? reply : undefined;
    } catch (error) {
      if (call !== calls) return undefined;
      throw error;
    }
  };
}

// ------------------------------------------------------------------------------------------------ addresses

// The name of the page in the present address.
export const pageName = () => location.pathname.replace(/^\/+|\/+$/g, "") || "runs";

// The parameters of the present address.
export const params = () => Object.fromEntries(new URLSearchParams(location.search));

// The address of a page; empty values are left out.
export function address(page, values = {}) {
  const isSet = (value) => value !== null && value !== undefined && value !== "" && value !== false;
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => isSet(value)));
  const path = `/${page === "runs" ? "" : page}`;
  return query.size ? `${path}?${query}` : path;
}

// A link to a page of the dashboard.
export const link = (page, values, ...children) => el("a", { href: address(page, values), "data-link": "" }, ...children);

// ------------------------------------------------------------------------------------------------ formats

// The first index from 0 to `length` - 1 at which `isReached(index)` holds, which then holds for all later ones; else `length`.
export function firstIndex(length, isReached) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isReached(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

// Whether there is no value.
export const isMissing = (value) => value === null || value === undefined;

// A share in percent.
export const percent = (value, digits = 1) => (isMissing(value) ? "–" : `${(100 * value).toFixed(digits)} %`);

// A share in percent, with more digits where it would look like 0.
export const share = (value) => percent(value, value && Math.abs(value) < 0.001 ? 3 : 1);

// A number with as many digits as its size needs.
export function number(value, digits = 2) {
  if (isMissing(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return value.toFixed(size < 0.1 ? 4 : size < 10 ? digits + 1 : digits);
}

// A count with its noun: "1 hit", "2 hits".
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

// The 95 % interval of an estimate, whose lines break between its ends alone.
export const interval = (estimate) => `[${percent(estimate.low)}, ${percent(estimate.high)}]`.replaceAll(" %", "\u00a0%");

// A difference in percentage points with its 95 % interval, if it has one.
export function differenceText({ mean, low, high }) {
  const points = (value) => (100 * value).toFixed(1);
  return `${points(mean)} ${isMissing(low) ? "(no interval)" : `[${points(low)}, ${points(high)}]`}`;
}

// The name and the estimate of cons@k of a validation.
export const consensus = (validation) => Object.entries(validation.metrics).find(([name]) => name.startsWith("cons@"));

// A number with its sign.
export const withSign = (value, digits = 2) => (isMissing(value) ? "–" : `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(digits)}`);

// The class that colours a number by its sign.
export const signClass = (value) => (value > 0 ? "up" : value < 0 ? "down" : "");

// A number of seconds in words.
export function duration(seconds) {
  if (isMissing(seconds)) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// The time since a moment, which is in seconds since 1970.
export const ago = (seconds) => (seconds ? `${duration(Date.now() / 1000 - seconds)} ago` : "–");

// The time since a moment as an element, and how those in an element are brought up to date.
export const age = (seconds) => el("span", { data: { since: String(seconds ?? 0) } }, ago(seconds));
export function updateAges(root) {
  for (const one of root.querySelectorAll("[data-since]")) one.textContent = ago(Number(one.dataset.since));
}

// A hostile text for a cell of a list: control and direction marks are made visible.
export const visible = (text) =>
  String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
    (character) => `⟨${character.codePointAt(0).toString(16).padStart(4, "0")}⟩`);

// The parts that are not empty, as one line.
export const joinParts = (parts) => visible(parts.filter((part) => !isMissing(part)).join(" · "));

// ------------------------------------------------------------------------------------------------ widgets

// A badge with a verdict, grey where the response could not be graded.
const VERDICTS = { correct: "good", wrong: "bad", malformed: "warn", no_answer: "warn", unparsable: "warn" };
export const verdictBadge = (name) => el("span", { class: `badge ${VERDICTS[name] ?? "neutral"}` }, name.replace("_", " "));

// A box with a title.
export const card = (title, ...children) => el("section", { class: "card" }, title ? el("h2", {}, title) : null, ...children);

// A number with its name, and a note below it; `className` colours the number.
export const tile = (name, value, note = "", className = "") =>
  el("div", { class: "tile", data: { tile: name } }, el("span", {}, name), el("b", { class: className }, value), el("small", {}, note));

// What a page shows that has no content yet: a text, or a list of texts and links, and the command that makes some.
export const empty = (text, command) => el("div", { class: "empty" }, el("p", {}, text), command ? el("code", {}, command) : null);

// The message of an error, in place of what could not be shown.
export const fault = (error) => el("p", { class: "error", role: "alert" }, error.message);

// A row of a table; attributes are those of its tr.
export const tableRow = (cells, attributes = {}) => el("tr", attributes, cells.map((cell) => el("td", {}, cell ?? "")));

// A table that scrolls sideways, without a head if `heads` is null. A row is a list of cells or a tr.
export function table(heads, rows, className = "") {
  return el("div", { class: "scroll" },
    el("table", { class: className },
      heads && el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((row) => (row instanceof Node ? row : tableRow(row))))));
}

// The head of a column that orders a list: `first` is the order that a first click selects; a second one turns it round.
export function sortHead(name, first, order, onsort) {
  const opposite = first.startsWith("-") ? first.slice(1) : `-${first}`, isCurrent = [first, opposite].includes(order);
  const mark = order.startsWith("-") ? " ▾" : " ▴", onclick = () => onsort(order === first ? opposite : first);
  return el("button", { class: "head", "aria-pressed": String(isCurrent), title: `order by ${name}`, onclick }, name, isCurrent ? mark : "");
}

// A choice with its label. An option is a text, or [value, text].
export function select(label, options, value, onchange) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  return el("label", {}, label, " ",
    el("select", { onchange: (event) => onchange(event.target.value), "aria-label": label },
      pairs.map(([key, text]) => el("option", { value: key, selected: key === value }, text))));
}

// A checkbox with its label behind it.
export const checkbox = (label, checked, onchange, name = label) =>
  el("label", {}, el("input", { type: "checkbox", checked, "aria-label": name, onchange: (event) => onchange(event.target.checked) }), ` ${label}`);

// Copy a text to the clipboard.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // no permission, or not a secure address
    const area = el("textarea", { style: { position: "fixed", opacity: "0" } }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
