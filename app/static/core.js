// What every page stands on: elements made of text nodes alone, questions to the server, the address, small formats.
// Model text is hostile: nothing in this folder writes HTML. Everything that is shown goes through `el` or textContent.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else if (name === "class") made.className = value;
    else if (name === "data") Object.assign(made.dataset, value);
    else if (["value", "checked", "selected", "disabled", "hidden"].includes(name)) made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const put = (parent, ...children) => {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return parent;
};

export async function ask(query, values = {}, signal) {
  let reply;
  try {
    reply = await fetch(`/ask/${query}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values), signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer; is `reasoner app` still running?");
  }
  const found = await reply.json().catch(() => ({ error: `the server failed (${reply.status}); its terminal says why` }));
  if (!reply.ok) throw new Error(found.error ?? `the server failed (${reply.status})`);
  return found;
}

// ------------------------------------------------------------------------------------------------ address

export const params = () => Object.fromEntries(new URLSearchParams(location.search));

export function address(page, values = {}) {
  const query = new URLSearchParams(
    Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false),
  );
  const path = page === "runs" ? "/" : `/${page}`;
  return query.size ? `${path}?${query}` : path;
}

export const link = (page, values, ...children) => el("a", { href: address(page, values), "data-link": "" }, ...children);

// ------------------------------------------------------------------------------------------------ formats

export const percent = (value, digits = 1) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)} %`);
export const share = (value) => percent(value, value && Math.abs(value) < 0.001 ? 3 : 1);  // what is not 0 is not shown as 0
export const number = (value, digits = 2) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return value.toFixed(size < 0.1 ? 4 : size < 10 ? digits + 1 : digits);
};
export const interval = (estimate) => `[${percent(estimate.low)}, ${percent(estimate.high)}]`;
export const signed = (value, digits = 2) => (value === null || value === undefined ? "–" : `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(digits)}`);
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
export function ago(when) {
  return when ? `${duration(Date.now() / 1000 - when)} ago` : "–";
}

// What a cell of a list can hold of a hostile text: control and direction marks are made visible.
export const visible = (text) =>
  String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => `⟨${c.codePointAt(0).toString(16).padStart(4, "0")}⟩`);

export const VERDICTS = { correct: "good", wrong: "bad", malformed: "warn", no_answer: "warn", unparsable: "warn", refused: "odd", timed_out: "odd", crashed: "odd" };
export const verdict = (name) => el("span", { class: `badge ${VERDICTS[name] ?? "odd"}` }, name.replace("_", " "));

export const card = (title, ...children) => el("section", { class: "card" }, title ? el("h2", {}, title) : null, ...children);
export const empty = (text, command) => el("div", { class: "empty" }, el("p", {}, text), command ? el("code", {}, command) : null);

export function table(heads, rows, options = {}) {
  return el("div", { class: "scroll" },
    el("table", { class: options.class ?? "" },
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((row) => (row instanceof Node ? row : el("tr", {}, row.map((cell) => el("td", {}, cell ?? "")))))),
    ));
}

export function select(label, options, value, onchange) {
  return el("label", {}, label, " ", el("select", { onchange: (event) => onchange(event.target.value), "aria-label": label },
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return el("option", { value: key, selected: key === value }, text);
    })));
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { style: { position: "fixed", opacity: "0" } }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
