// The frame: navigation, the router, the keyboard, live updates. A page is a module of pages/ with
//   export async function open(root, page): draws itself; may return {live, keys, close}
// page = {params, set(values), go(page, values), stamp}

import { address, ago, ask, copy, duration, el, params, put, verdict } from "./core.js";

const PAGES = {
  runs: ["Runs", false], overview: ["Overview", true], rollouts: ["Rollouts", true], problems: ["Problems", true],
  aha: ["Aha", true], evals: ["Evals", false], compare: ["Compare", false], play: ["Play", false], notes: ["Notes", true],
};
// Pages that need no run and yet follow the one that is picked; what of their address stays when another is picked.
const FOLLOWING = { evals: [], play: ["question", "gold", "rule", "begin"] };
const HIDDEN = { group: "rollouts", problem: "problems" };
const LIVE = 2000;
const KEYS = [
  ["j / k", "next, previous rollout"], ["J / K", "the same problem at the next, previous step"], ["h / l", "previous, next in the group"],
  ["[ / ]", "previous, next reflection span"], [", / .", "previous, next hit of the search"], ["c", "colour tokens by another statistic"], ["m", "as written, or formulas set"],
  ["/", "search"], ["s", "star"], ["n", "note"], ["y", "copy the link of this view"],
  ["g r / o / l / p / a / e", "go to runs, overview, rollouts, problems, aha, evals"], ["?", "this sheet"], ["Esc", "close"],
];
const GO = { r: "runs", o: "overview", l: "rollouts", p: "problems", a: "aha", e: "evals", c: "compare", y: "play", n: "notes" };

let current = null;
let opening = 0;
let root, main, nav, picker, dot;
let known = [];

const pageName = () => location.pathname.replace(/^\/+|\/+$/g, "") || "runs";

function frame(mount) {
  const saved = localStorage.getItem("reasoner-theme");
  if (saved) document.body.classList.toggle("dark", saved === "dark");
  picker = el("select", { "aria-label": "run", onchange: () => pick(picker.value) });
  dot = el("span", { class: "dot", role: "status" });
  nav = el("nav", { "aria-label": "pages" });
  main = el("main", { tabindex: "-1" });
  const theme = el("button", { title: "dark or light", "aria-label": "dark or light", onclick: () => {
    const dark = document.body.classList.toggle("dark");
    localStorage.setItem("reasoner-theme", dark ? "dark" : "light");
    dispatchEvent(new Event("themechange"));
  } }, "◐");
  const help = el("button", { title: "keys", "aria-label": "keys", onclick: sheet }, "?");
  put(mount, el("header", {}, el("a", { href: "/", "data-link": "", class: "brand" }, "reasoner"), nav,
    el("span", { class: "right" }, dot, picker, theme, help)), main);
  mount.classList.add("rz");
  return mount;
}

// Another run is picked: on the same page where that is a page of a run.
function pick(run) {
  const name = pageName(), values = params();
  const kept = (FOLLOWING[name] ?? []).filter((key) => key in values).map((key) => [key, values[key]]);
  return go(PAGES[name]?.[1] || name in FOLLOWING ? name : "overview", { ...Object.fromEntries(kept), run });
}

function drawNav(name, run) {
  put(nav, Object.entries(PAGES).map(([page, [title]]) =>
    el("a", { href: address(page, run ? { run } : {}), "data-link": "", "aria-current": page === (HIDDEN[name] ?? name) ? "page" : null }, title)));
}

async function drawRuns(run) {
  const found = await ask("runs");
  known = found.runs;
  put(picker, run ? null : el("option", { value: "" }, known.length ? "choose a run" : "no runs"),
    known.map((row) => el("option", { value: row.name, selected: row.name === run }, row.name)));
  const row = known.find((one) => one.name === run);
  dot.className = `dot ${row?.status ?? ""}`;
  dot.textContent = row ? row.status : "";
  dot.title = row?.status === "live" ? `${duration(row.left)} left` : row ? `began ${ago(row.began)}` : "";
}

export function go(page, values = {}, { replace = false } = {}) {
  const url = address(page, values);
  history[replace ? "replaceState" : "pushState"]({}, "", url);
  return show();
}

function set(values, { push = false } = {}) {
  const merged = { ...params(), ...values };
  history[push ? "pushState" : "replaceState"]({}, "", address(pageName(), merged));
  if (current) current.page.params = params();
}

async function show() {
  const turn = ++opening;
  current?.close?.();
  current = null;
  root.dataset.state = "loading";
  let name = pageName();
  if (!(name in PAGES) && !(name in HIDDEN)) name = "runs";
  const values = params();
  try {
    await drawRuns(values.run);
    if (turn !== opening) return;
    if ((PAGES[name]?.[1] || name in HIDDEN) && !values.run) {
      if (known.length) return go(name, { ...values, run: known[0].name }, { replace: true });
      name = "runs";
    }
    drawNav(name, values.run);
    document.title = `${PAGES[name]?.[0] ?? name}${values.run ? ` · ${values.run}` : ""} · reasoner`;
    const module = await import(`./pages/${name}.js`);
    if (turn !== opening) return;
    const page = { params: values, set, go, name };
    const content = el("div", { class: `page ${name}` });
    put(main, content);
    const opened = (await module.open(content, page)) ?? {};
    if (turn !== opening) return opened.close?.();
    current = { ...opened, page };
    root.dataset.state = "ready";
  } catch (error) {
    if (turn !== opening) return;
    failed(error);
  }
}

function failed(error) {
  put(main, el("div", { class: "card error", role: "alert" }, el("h2", {}, "This could not be shown"), el("p", {}, error.message),
    el("button", { onclick: show }, "try again")));
  root.dataset.state = "error";
}

async function tick() {
  if (!document.hidden && current?.live && root.isConnected) {
    const mine = current;
    try {
      await mine.live();
      if (mine === current) await drawRuns(params().run);
    } catch (error) {
      if (mine === current) { dot.className = "dot stopped"; dot.textContent = error.message; }
    }
  }
  setTimeout(tick, LIVE);
}

function sheet() {
  const open = document.querySelector("dialog.keys");
  if (open) return open.remove();
  const made = el("dialog", { class: "keys rz-dialog" }, el("h2", {}, "Keys"),
    el("dl", {}, KEYS.map(([key, meaning]) => [el("dt", {}, key), el("dd", {}, meaning)])),
    el("p", {}, "Verdicts: ", ["correct", "wrong", "malformed", "refused"].map((name) => [verdict(name), " "])),
    el("button", { onclick: () => made.remove() }, "close"));
  root.append(made);
  made.show();
}

let prefix = "";
function key(event) {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest?.("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (prefix === "g" && GO[event.key]) {
    prefix = "";
    event.preventDefault();
    return go(GO[event.key], params().run ? { run: params().run } : {});
  }
  prefix = event.key === "g" ? "g" : "";
  if (event.key === "?") return sheet();
  if (event.key === "Escape") document.querySelector("dialog.keys")?.remove();
  if (event.key === "y") return copy(location.href);
  if (event.key === "/") {
    const field = document.querySelector(".rz [data-search]");
    if (field) { event.preventDefault(); field.focus(); }
    return;
  }
  const act = current?.keys?.[event.key];
  if (act) { event.preventDefault(); act(); }
}

function begin() {
  const mount = document.getElementById("reasoner");
  if (!mount) return setTimeout(begin, 30);
  if (root === mount) return;
  root = frame(mount);
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest?.("a[data-link]");
    if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    history.pushState({}, "", anchor.getAttribute("href"));
    show();
    scrollTo(0, 0);
  });
  addEventListener("popstate", show);
  addEventListener("keydown", key);
  show();
  setTimeout(tick, LIVE);
}

begin();
