// All rollouts: filters, full-text search, a list of any length, and one rollout in full.
import { FILTERS, address, ask, el, empty, fault, number, put, select, signClass, sortHead, verdictBadge, visible, withSign } from "../core.js";
import { clearPane, detail } from "../detail.js";

const ORDERS = [
  ["step", "first to last"], ["-step", "last to first"], ["-reward", "highest reward"], ["reward", "lowest reward"],
  ["-tokens", "longest"], ["tokens", "shortest"],
];
// The heads of the list's columns, with the order that a click on one selects first.
const HEADS = [["rollout", "step"], ["verdict"], ["reward", "-reward"], ["advantage"], ["tokens", "-tokens"], ["completion"]];
const MAX_HEIGHT = 30_000_000;  // pixels of an element that browsers can scroll
const DETAIL_KEYS = ["J", "K", "h", "l", "[", "]", ",", ".", "c", "m", "s", "n"];

// The columns of a rollout in the list.
function rowCells(row) {
  const excerpt = row.excerpt.map((piece, i) => (i % 2 ? el("mark", { class: "hit" }, visible(piece)) : visible(piece)));
  return [
    el("span", { class: "id" }, row.name), verdictBadge(row.verdict), el("span", { class: "number" }, number(row.reward)),
    el("span", { class: `number ${signClass(row.advantage)}` }, withSign(row.advantage)), el("span", { class: "number" }, number(row.tokens)),
    el("span", { class: "head" }, row.excerpt.length ? excerpt : visible(row.head)),
  ];
}

// A field of the filter; `onchange` is called with its value.
function filterField(name, value, onchange) {
  const change = (event) => onchange(event.target.value.trim()), [meaning, values] = FILTERS[name];
  if (values.length) {
    const options = ["", ...values].map((choice) => el("option", { value: choice, selected: choice === value }, choice.replace("_", " ") || "any"));
    return el("label", {}, name, el("select", { "aria-label": name, onchange: change }, options));
  }
  return el("label", { class: name === "text" ? "wide" : "" }, name,
    el("input", { "aria-label": name, placeholder: meaning, title: meaning, value, data: name === "text" ? { search: "" } : {}, onchange: change }));
}

// A list of `total` rows of which only those in view are elements. `load(first, number)` fetches rows.
class VirtualList {
  constructor({ load, createRow, onerror }) {
    Object.assign(this, { load, createRow, onerror });
    this.inner = el("div", { class: "inner" });
    this.box = el("div", { class: "list", tabindex: "0", role: "listbox", "aria-label": "rollouts", onscroll: () => this.draw() }, this.inner);
    this.generation = 0;  // of the filter: replies to an earlier one are dropped
    this.reset({ isSearch: false });
  }

  // Forget all rows. In a search a row is higher: its excerpt stands below.
  reset({ isSearch }) {
    this.generation += 1;
    this.rows = new Map();
    this.requests = new Map();  // by the first row of a block that was requested: the promise of its reply
    this.total = 0;
    [this.rowHeight, this.blockSize] = isSearch ? [56, 40] : [30, 100];
    this.box.scrollTop = 0;
    this.box.classList.toggle("search", isSearch);
  }

  // Fetch the block from row `first` on, once; returns the reply, or nothing when it is out of date.
  fetchBlock(first) {
    if (!this.requests.has(first)) this.requests.set(first, this.requestBlock(first));
    return this.requests.get(first);
  }

  async requestBlock(first) {
    const { generation } = this;
    try {
      const reply = await this.load(first, this.blockSize);
      if (generation !== this.generation) return undefined;
      reply.rows.forEach((row, i) => this.rows.set(first + i, row));
      return reply;
    } catch (error) {
      if (generation !== this.generation) return undefined;
      this.requests.delete(first);  // it is fetched again when it comes into view
      throw error;
    }
  }

  // Let blocks be fetched again that may change when rows come: the incomplete ones, or all of them.
  expire({ keepsComplete }) {
    const isComplete = (start) => start + this.blockSize <= this.total;
    this.requests = new Map([...this.requests].filter(([start]) => keepsComplete && isComplete(start)));
  }

  // Set the number of rows.
  resize(total) {
    this.total = total;
    this.inner.style.height = `${Math.min(total * this.rowHeight, MAX_HEIGHT)}px`;
  }

  // Pixels of rows for a pixel of scrolling: more than 1 in a list that is too high for a browser.
  get scale() { return Math.max(1, (this.total * this.rowHeight) / MAX_HEIGHT); }

  // Create the elements of the rows in view, and fetch those that are missing.
  draw() {
    const { rowHeight, blockSize, scale, box } = this, offset = box.scrollTop * scale;
    const first = Math.max(0, Math.floor(offset / rowHeight) - 5);
    const last = Math.min(this.total, first + Math.ceil(box.clientHeight / rowHeight) + 10);
    for (let start = Math.floor(first / blockSize) * blockSize; start < last; start += blockSize) {
      if (!this.requests.has(start)) this.fetchBlock(start).then((reply) => reply && this.draw(), this.onerror);
    }
    const above = Math.floor(offset / rowHeight) - first;  // rows above the view
    const start = box.scrollTop - (offset % rowHeight) - above * rowHeight;
    put(this.inner, Array.from({ length: Math.max(0, last - first) }, (_, i) => {
      const top = scale === 1 ? (first + i) * rowHeight : start + i * rowHeight;
      return this.createRow(this.rows.get(first + i), first + i, `${top}px`);
    }));
  }

  // Scroll so that a row is in view.
  scrollTo(index, share = 1 / 2) { this.box.scrollTop = Math.max(0, (index * this.rowHeight) / this.scale - this.box.clientHeight * share); }

  // Scroll only if the row is not in view.
  reveal(index) {
    const top = (index * this.rowHeight) / this.scale, { scrollTop, clientHeight } = this.box;
    if (top < scrollTop || top > scrollTop + clientHeight - 2 * this.rowHeight) this.scrollTo(index);
  }
}

export async function open(root, page) {
  const { run } = page.params;
  const filter = () => Object.fromEntries(Object.keys(FILTERS).filter((name) => page.params[name]).map((name) => [name, page.params[name]]));
  const query = (values) => ask("rollouts", { run, where: filter(), order, ...values });
  let order = page.params.order ?? "step", current = null, index = -1;
  let loading = Promise.resolve();  // of the first rows of the present filter
  let moving = Promise.resolve();  // to other rows, one key after the other
  const count = el("b", { data: { count: "" } }), note = el("span", { class: "muted" }), exports = el("span", { class: "muted" });
  const pane = el("div", { class: "pane" });
  const list = new VirtualList({
    load: (offset, limit) => query({ offset, limit }), createRow, onerror: (error) => { note.textContent = ` ${error.message}`; },
  });
  const orderSelect = select("order", ORDERS, order, (value) => sortBy(value)), heads = el("div", { class: "heads" });
  // Show the list in another order.
  function sortBy(value) {
    order = value;
    page.set({ order });
    drawHeads();
    reset();
  }
  function drawHeads() {
    put(heads, HEADS.map(([name, first]) => (first ? sortHead(name, first, order, sortBy) : el("span", {}, name))));
    orderSelect.querySelector("select").value = order;
  }
  const changeFilter = (name, value) => {
    page.set({ [name]: value, rollout: "" }, { push: true });
    reset();
  };
  put(root,
    el("div", { class: "filters" }, Object.keys(FILTERS).map((name) => filterField(name, page.params[name] ?? "", (value) => changeFilter(name, value)))),
    el("div", { class: "bar-row" }, count, note, el("button", { onclick: () => page.go("rollouts", { run }) }, "clear"), orderSelect, exports),
    el("div", { class: "split" }, el("div", { class: "listing" }, heads, list.box), pane));

  // An element of the list; a row that is not loaded yet is empty.
  function createRow(row, position, top) {
    const onclick = (event) => {
      if (event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      if (row) { index = position; show(row.name, true); }
    };
    return el("a", {
      class: "row", role: "option", "aria-selected": String(row?.name === current), style: { top }, onclick,
      data: row ? { rollout: row.name, at: String(position) } : {}, href: row ? address("rollouts", { ...page.params, rollout: row.name }) : "#",
    }, row ? rowCells(row) : el("span", { class: "muted" }, "…"));
  }

  // Load the list for the present filter, and show the rollout of the address or the first one.
  async function reset() {
    current = page.params.rollout ?? null;
    const rows = loading = loadRows(), isPresent = await rows;
    if (isPresent && current) await show(current);
  }
  // Load the first rows; returns whether they are those of the present filter.
  async function loadRows() {
    list.reset({ isSearch: Boolean(page.params.text) });
    list.box.dataset.state = "loading";
    const { generation } = list;
    try {
      const reply = await list.fetchBlock(0);
      if (generation !== list.generation) return false;
      drawTotal(reply);
      if (current && order === "step") await scrollToRollout(current);
      if (generation !== list.generation) return false;
      if (!current) [current, index] = [reply.rows[0]?.name ?? null, 0];
      list.draw();
      list.box.dataset.state = "ready";
      if (!current) clearPane(pane, empty(Object.keys(filter()).length ? "No rollout matches. Widen the filter." : "There is no rollout."));
      return true;
    } catch (error) {
      if (generation !== list.generation) return false;
      list.resize(0);
      put(list.inner, fault(error));
      count.textContent = "0";
      list.box.dataset.state = "error";
      return false;
    }
  }
  // Show the number of rollouts, what is not indexed, and the exports.
  function drawTotal(reply) {
    list.resize(reply.total);
    count.textContent = number(reply.total);
    const faults = Object.keys(reply.faults).join(", ");
    note.textContent = ` rollouts${faults ? ` · unreadable: step ${faults}` : ""}`;
    const exportLink = (kind) => el("a", { href: `/export?${new URLSearchParams({ run, format: kind, ...filter() })}`, download: "" }, kind);
    put(exports, "export ", ["jsonl", "parquet"].map((kind) => [exportLink(kind), " "]));
  }
  async function scrollToRollout(name) {
    const { place } = await query({ limit: 0, near: name }).catch(() => ({ place: null }));
    if (place === null) return;
    index = place;
    list.scrollTo(place, 1 / 3);
  }
  // Show a rollout in the pane.
  async function show(name, push = false) {
    current = name;
    if (push) page.set({ rollout: name, tok: "" }, { push: true });
    for (const row of list.inner.querySelectorAll(".row")) row.setAttribute("aria-selected", String(row.dataset.rollout === name));
    await detail(pane, { run, name, page, onchange: (next) => show(next, true) });
  }
  // Show the next or the previous rollout of the list, when the rows are there.
  function move(by) { moving = moving.then(() => step(by)).catch(list.onerror); }
  async function step(by) {
    for (let rows = null; rows !== loading;) { rows = loading; await rows; }  // another filter may come meanwhile
    if (!list.total) return;
    if (current && list.rows.get(index)?.name !== current) for (const [i, row] of list.rows) if (row.name === current) index = i;
    const next = Math.max(0, Math.min(list.total - 1, current ? index + by : 0));
    if (!list.rows.has(next)) await list.fetchBlock(Math.floor(next / list.blockSize) * list.blockSize);
    const row = list.rows.get(next);
    if (!row) return;
    index = next;
    list.reveal(index);
    show(row.name, true).then(() => list.draw());
  }
  const keys = page.keys = {
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    ...Object.fromEntries(DETAIL_KEYS.map((key) => [key, () => pane.keys?.[key]?.()])),
  };
  drawHeads();
  await reset();
  return {
    live: async () => {
      if (list.box.dataset.state === "loading") return;  // a search takes as long as it takes: it is not begun twice
      const { generation } = list, reply = await query({ offset: 0, limit: 0 });
      if (generation !== list.generation || reply.total === list.total) return;
      if (!current) return reset();
      list.expire({ keepsComplete: order === "step" });
      drawTotal(reply);
      list.draw();
    },
    keys,
  };
}
