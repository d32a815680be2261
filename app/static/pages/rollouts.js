// Every rollout: filters, full-text search, a list of any length, and one of them in full.
import { address, ask, copy, el, empty, link, number, put, select, signed, verdict, visible } from "../core.js";
import { detail } from "../detail.js";

const FIELDS = ["step", "problem", "subject", "level", "verdict", "correct", "finish", "reward", "tokens", "label", "text"];
const CHOICES = { correct: ["", "yes", "no"], finish: ["", "stop", "length"], label: ["", "cue", "self-correction", "aha"], verdict: ["", "correct", "wrong", "malformed", "no_answer", "unparsable", "refused", "timed_out", "crashed"] };
const HINTS = { step: "12 or 10:20", problem: "id", subject: "family", level: "1", reward: "0.5:", tokens: ":200", text: 'words, "a phrase", begin*, -without' };
const ORDERS = [["step", "first to last"], ["-step", "last to first"], ["-reward", "highest reward"], ["reward", "lowest reward"], ["-tokens", "longest"], ["tokens", "shortest"]];

export async function open(root, page) {
  const run = page.params.run;
  const where = () => Object.fromEntries(FIELDS.filter((name) => page.params[name]).map((name) => [name, page.params[name]]));
  let order = page.params.order ?? "step", total = 0, cache = new Map(), asked = new Set(), chosen = page.params.rollout ?? null, at = -1, turn = 0;
  const isSearch = () => Boolean(page.params.text);
  let rowHeight = 30, perPage = 100;  // pixels of a row, rows asked for at once: a row of a search has its excerpt below
  const count = el("b", { data: { count: "" } }), note = el("span", { class: "muted" });
  const inner = el("div", { class: "inner" }), list = el("div", { class: "list", tabindex: "0", role: "listbox", "aria-label": "rollouts", onscroll: () => fill() }, inner);
  const pane = el("div", { class: "pane" });

  const field = (name) => {
    const change = (value) => { page.set({ [name]: value, rollout: "" }, { push: true }); chosen = null; reset(); };
    if (CHOICES[name]) return el("label", {}, name, el("select", { "aria-label": name, onchange: (e) => change(e.target.value) }, CHOICES[name].map((v) => el("option", { value: v, selected: v === (page.params[name] ?? "") }, v || "any"))));
    return el("label", { class: name === "text" ? "wide" : "" }, name, el("input", { "aria-label": name, placeholder: HINTS[name], value: page.params[name] ?? "", data: name === "text" ? { search: "" } : {}, onchange: (e) => change(e.target.value.trim()) }));
  };
  const exports = el("span", { class: "muted" });
  put(root, el("div", { class: "filters" }, FIELDS.map(field), select("order", ORDERS, order, (v) => { order = v; page.set({ order: v }); reset(); })),
    el("div", { class: "bar-row" }, count, note, el("button", { onclick: () => page.go("rollouts", { run }) }, "clear"), exports),
    el("div", { class: "split" }, list, pane));

  async function load(first) {
    if (asked.has(first)) return;
    asked.add(first);
    const mine = turn;
    const found = await ask("rollouts", { run, where: where(), order, offset: first, limit: perPage });
    if (mine !== turn) return;
    found.rows.forEach((row, i) => cache.set(first + i, row));
    return found;
  }
  async function reset() {
    turn += 1; cache = new Map(); asked = new Set(); list.scrollTop = 0; list.dataset.state = "loading";
    [rowHeight, perPage] = isSearch() ? [56, 40] : [30, 100];
    list.classList.toggle("search", isSearch());
    const mine = turn;
    try {
      const found = await load(0);
      if (mine !== turn) return;
      size(found);
      if (chosen && order === "step") await scrollTo(chosen);
      if (mine !== turn) return;
      fill();
      list.dataset.state = "ready";
      if (chosen) await show(chosen);
      else if (found.rows.length) { at = 0; put(pane, empty("Choose a rollout, or press j.")); }
      else put(pane, empty("No rollout matches. Widen the filter."));
    } catch (error) {
      put(inner, el("p", { class: "error", role: "alert" }, error.message)); total = 0; count.textContent = "0"; list.dataset.state = "error";
    }
  }
  function size(found) {
    total = found.total;
    inner.style.height = `${Math.min(total * rowHeight, 30_000_000)}px`;
    count.textContent = total.toLocaleString("en-US");
    const faults = Object.keys(found.faults);
    note.textContent = ` rollouts${found.indexed < found.shards ? ` · indexed ${found.indexed} of ${found.shards} steps so far` : ""}${faults.length ? ` · unreadable: step ${faults.join(", ")}` : ""}`;
    put(exports, "export ", ["jsonl", "parquet", "md"].map((kind) => [el("a", { href: `/export?${new URLSearchParams({ run, format: kind, ...where() })}`, download: "" }, kind), " "]));
  }
  async function scrollTo(name) {
    const { place } = await ask("rollouts", { run, where: where(), order, limit: 0, near: name }).catch(() => ({ place: null }));
    if (place === null) return;
    at = place;
    list.scrollTop = Math.max(0, (place * rowHeight) / scale() - list.clientHeight / 3);
  }
  const scale = () => (total * rowHeight > 30_000_000 ? (total * rowHeight) / 30_000_000 : 1);
  function fill() {
    const first = Math.max(0, Math.floor((list.scrollTop * scale()) / rowHeight) - 5), last = Math.min(total, first + Math.ceil(list.clientHeight / rowHeight) + 10);
    for (let start = Math.floor(first / perPage) * perPage; start < last; start += perPage) {
      if (!asked.has(start)) load(start).then((found) => found && fill(), (error) => { note.textContent = ` ${error.message}`; });
    }
    const base = list.scrollTop - ((list.scrollTop * scale()) % rowHeight) - Math.min(5, first ? 5 : Math.floor((list.scrollTop * scale()) / rowHeight)) * rowHeight;
    put(inner, Array.from({ length: Math.max(0, last - first) }, (_, i) => {
      const row = cache.get(first + i);
      const top = scale() === 1 ? (first + i) * rowHeight : base + i * rowHeight;
      return el("a", { class: "row", role: "option", "aria-selected": String(row?.name === chosen), style: { top: `${top}px` }, data: row ? { rollout: row.name, at: String(first + i) } : {},
        href: row ? address("rollouts", { ...page.params, rollout: row.name }) : "#",
        onclick: (event) => { if (event.ctrlKey || event.metaKey) return; event.preventDefault(); event.stopPropagation(); if (row) { at = first + i; show(row.name, true); } } },
      row ? [el("span", { class: "id" }, row.name), verdict(row.verdict), el("span", { class: "n" }, number(row.reward)), el("span", { class: `n ${row.advantage > 0 ? "up" : row.advantage < 0 ? "down" : ""}` }, signed(row.advantage)), el("span", { class: "n" }, number(row.tokens)), el("span", { class: "head" }, row.excerpt.length ? row.excerpt.map((piece, n) => (n % 2 ? el("mark", { class: "hit" }, visible(piece)) : visible(piece))) : visible(row.head))] : el("span", { class: "muted" }, "…"));
    }));
  }
  async function show(name, push = false) {
    chosen = name;
    if (push) page.set({ rollout: name, tok: "" }, { push: true });
    for (const row of inner.querySelectorAll(".row")) row.setAttribute("aria-selected", String(row.dataset.rollout === name));
    try {
      await detail(pane, { run, name, page, onchange: (next) => show(next, true) });
    } catch (error) {
      put(pane, el("p", { class: "error", role: "alert" }, error.message));
    }
  }
  async function move(by) {
    if (!total) return;
    if (chosen && cache.get(at)?.name !== chosen) for (const [i, row] of cache) if (row.name === chosen) at = i;
    at = Math.max(0, Math.min(total - 1, chosen ? at + by : 0));
    if (!cache.has(at)) await load(Math.floor(at / perPage) * perPage);
    const row = cache.get(at);
    if (!row) return;
    const top = (at * rowHeight) / scale();
    if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 2 * rowHeight) list.scrollTop = top - list.clientHeight / 2;
    await show(row.name, true);
    fill();
  }
  await reset();
  return {
    live: async () => {
      const found = await ask("rollouts", { run, where: where(), order, offset: 0, limit: 0 });
      if (found.total !== total) { asked = new Set([...asked].filter((start) => start + perPage <= total && order === "step")); size(found); fill(); }
    },
    keys: { j: () => move(1), k: () => move(-1), ...pane_keys(pane), ArrowDown: () => move(1), ArrowUp: () => move(-1) },
  };
}

const pane_keys = (pane) => Object.fromEntries(["J", "K", "h", "l", "[", "]", ",", ".", "c", "m", "s", "n"].map((key) => [key, () => pane.keys?.[key]?.()]));
