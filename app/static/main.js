// The frame: navigation, the router, the keyboard and live updates. A page is a module of pages/ with
//   export async function open(root, page): draws itself; may return {live, keys, close}
// page = {params, set(values), go(page, values), name, keys}; a page may set its keys before it has opened

import { address, ago, ask, copy, duration, el, isOffered, link, pageName, params, put, verdictBadge, visible } from "./core.js";

// By name: the title, whether the page is one of a single run, and the key that opens it after g.
const PAGES = {
  runs: ["Runs", false, "r"], overview: ["Overview", true, "o"], rollouts: ["Rollouts", true, "l"], problems: ["Problems", true, "p"],
  failures: ["Failures", true, "w"], disagreements: ["Disagreements", true, "d"], reflection: ["Reflection", true, "f"], evals: ["Evals", false, "e"],
  compare: ["Compare", false, "c"], chat: ["Chat", false, "h"], notes: ["Notes", true, "n"],
};
const GO = Object.fromEntries(Object.entries(PAGES).map(([name, [, , key]]) => [key, name]));
// Pages that need no run and yet follow the selected one, with the parameters that stay when another run is selected.
const FOLLOWING = { evals: [], chat: ["question", "gold", "verifier", "begin", "other", "other_checkpoint"] };
// Pages that are not in the navigation: [title, the page whose entry is highlighted].
const SUBPAGES = { group: ["Group", "rollouts"], problem: ["Problem", "problems"] };
const POLL_MILLISECONDS = 2000;
const KEYS = [
  ["j / k", "next, previous rollout"], ["J / K", "the same problem at the next, previous step"],
  ["h / l", "previous, next completion of the group"], ["[ / ]", "previous, next reflection span"],
  [", / .", "previous, next hit of the search"], ["c", "colour the tokens by another statistic"], ["m", "plain text or rendered formulas"],
  ["/", "search"], ["s", "star"], ["n", "note"], ["y", "copy the link of this view"],
  [`g then ${Object.keys(GO).join(" ")}`, `go to ${Object.values(PAGES).map(([title]) => title).join(", ")}`],
  ["?", "this list"], ["Esc", "close"],
];

let current = null;  // what the open page returned
let openPage = null;  // the page of the present address, from the moment on that it is being opened
let openingNumber = 0;  // of the latest call of show(): an older one stops
let root, main, nav, runPicker, statusDot;
let runRows = [];

// Draw the header and the empty main part.
function frame(mount) {
  const savedTheme = localStorage.getItem("reasoner-theme"), hasShell = Boolean(window.gradio_config);  // which knows the system's theme
  const isDark = savedTheme ? savedTheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (savedTheme || !hasShell) document.body.classList.toggle("dark", isDark);
  runPicker = el("select", { "aria-label": "run", onchange: () => selectRun(runPicker.value) });
  statusDot = el("span", { class: "dot", role: "status" });
  nav = el("nav", { "aria-label": "pages" });
  main = el("main", { tabindex: "-1" });
  const theme = el("button", { title: "dark or light", "aria-label": "dark or light", onclick: switchTheme }, "◐");
  const help = el("button", { title: "keys", "aria-label": "keys", onclick: toggleKeys }, "?");
  put(mount, el("header", {}, el("a", { href: address("runs"), "data-link": "", class: "brand" }, "reasoner"), nav,
    el("span", { class: "header-tools" }, statusDot, runPicker, theme, help)), main);
  mount.classList.add("rz");
  return mount;
}

// Switch between dark and light, and remember the choice.
function switchTheme() {
  const isDark = document.body.classList.toggle("dark");
  localStorage.setItem("reasoner-theme", isDark ? "dark" : "light");
  dispatchEvent(new Event("themechange"));
}

// Show another run: on the same page if that is a page of a run, or follows it.
function selectRun(run) {
  const name = pageName(), values = params();
  const carried = (FOLLOWING[name] ?? []).filter((key) => key in values).map((key) => [key, values[key]]);
  return go(PAGES[name]?.[1] || name in FOLLOWING ? name : "overview", { ...Object.fromEntries(carried), run });
}

// Draw the links to the pages.
function drawNav(name, run) {
  const highlighted = SUBPAGES[name]?.[1] ?? name;
  put(nav, Object.entries(PAGES).filter(([page]) => isOffered(page)).map(([page, [title]]) =>
    el("a", { href: address(page, run ? { run } : {}), "data-link": "", "aria-current": page === highlighted ? "page" : null }, title)));
  const link = nav.querySelector("[aria-current]");
  if (link) nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2;  // on a phone the links are wider than the window
}

// Draw the list of runs and the state of the selected one.
async function drawRuns(run) {
  const { runs } = await ask("runs");
  if (run !== params().run) return;  // another one was selected meanwhile, and is drawn by its own call
  runRows = runs;
  const row = runRows.find((one) => one.name === run);
  put(runPicker, row ? null : el("option", { value: "" }, runRows.length ? "choose a run" : "no runs"),
    runRows.map((one) => el("option", { value: one.name, selected: one === row }, one.name)));
  statusDot.className = `dot ${row?.status ?? ""}`;
  statusDot.textContent = row ? row.status : "";
  statusDot.title = row?.status === "live" ? `${duration(row.seconds_left)} left` : row ? `started ${ago(row.started_at)}` : "";
}

// Open a page by its name.
export function go(page, values = {}, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"]({}, "", address(page, values));
  return show();
}

// Change parameters of the address of the open page without opening it again.
function set(page, values, { push = false } = {}) {
  history[push ? "pushState" : "replaceState"]({}, "", address(pageName(), { ...params(), ...values }));
  page.params = params();
}

// Open the page of the present address.
async function show() {
  const opening = ++openingNumber;
  current?.close?.();
  current = openPage = null;
  root.dataset.state = "loading";
  let name = pageName();
  const values = params(), isPage = isOffered(name) && (Object.hasOwn(PAGES, name) || Object.hasOwn(SUBPAGES, name));
  try {
    await drawRuns(values.run);
    if (opening !== openingNumber) return;
    if (isPage && (PAGES[name]?.[1] || name in SUBPAGES) && !values.run) {
      if (runRows.length) return go(name, { ...values, run: runRows[0].name }, { replace: true });
      name = "runs";
    }
    drawNav(name, values.run);
    if (!isPage) throw new Error(`There is no page at /${visible(name)}.`);
    document.title = `${(PAGES[name] ?? SUBPAGES[name])[0]}${values.run ? ` · ${values.run}` : ""} · reasoner`;
    const module = await import(`./pages/${name}.js`);
    if (opening !== openingNumber) return;
    const page = { params: values, set: (...change) => opening === openingNumber && set(page, ...change), go, name };
    const content = el("div", { class: `page ${name}` });
    put(main, content);
    openPage = page;
    const handlers = (await module.open(content, page)) ?? {};
    if (opening !== openingNumber) return handlers.close?.();
    current = handlers;
    requestAnimationFrame(() => { if (opening === openingNumber) root.dataset.state = "ready"; });  // charts are drawn with a frame
  } catch (error) {
    if (opening === openingNumber) showError(error);
  }
}

// Show an error in place of the page, and where to go from it.
function showError(error) {
  document.title = "reasoner";
  const [newest] = runRows, links = [
    link("runs", {}, "all runs"), newest ? link("overview", { run: newest.name }, `overview of ${newest.name}`) : null];
  put(main, el("div", { class: "card" }, el("h2", { class: "error" }, "This page cannot be shown"), el("p", { role: "alert" }, error.message),
    el("div", { class: "bar-row" }, links, el("button", { onclick: show }, "try again"))));
  root.dataset.state = "error";
}

// Let the open page fetch what is new, every POLL_MILLISECONDS.
async function poll() {
  if (!document.hidden && current?.live && root.isConnected) {
    const opened = current;
    try {
      await opened.live();
      if (opened === current && !document.hidden) await drawRuns(params().run);
    } catch (error) {
      if (opened === current) { statusDot.className = "dot stopped"; statusDot.textContent = error.message; }
    }
  }
  setTimeout(poll, POLL_MILLISECONDS);
}

// Show or hide the list of keys.
function toggleKeys() {
  const open = document.querySelector("dialog.keys");
  if (open) return open.remove();
  const dialog = el("dialog", { class: "keys rz-dialog" }, el("h2", {}, "Keys"),
    el("dl", {}, KEYS.map(([key, meaning]) => [el("dt", {}, key), el("dd", {}, meaning)])),
    el("p", {}, "Colours of verdicts: ", ["correct", "wrong", "malformed", "refused"].map((name) => [verdictBadge(name), " "])),
    el("button", { onclick: () => dialog.remove() }, "close"));
  root.append(dialog);
  dialog.show();
}

let prefix = "";  // "g" after that key

// Do what a key stands for, unless it is typed into a field.
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (prefix === "g" && GO[event.key] && isOffered(GO[event.key])) {
    prefix = "";
    event.preventDefault();
    return go(GO[event.key], params().run ? { run: params().run } : {});
  }
  prefix = event.key === "g" ? "g" : "";
  if (event.key === "?") return toggleKeys();
  if (event.key === "Escape") document.querySelector("dialog.keys")?.remove();
  if (event.key === "y") return copy(location.href);
  if (event.key === "/") return focusSearch(event);
  const action = (current?.keys ?? openPage?.keys)?.[event.key];
  if (action) { event.preventDefault(); action(); }
}

// Put the cursor into the page's search field, if it has one.
function focusSearch(event) {
  const field = document.querySelector(".rz [data-search]");
  if (field) { event.preventDefault(); field.focus(); }
}

// Open a link of the dashboard without loading the document again.
function onLink(event) {
  const anchor = event.target.closest?.("a[data-link]");
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  history.pushState({}, "", anchor.getAttribute("href"));
  show();
  scrollTo(0, 0);
}

// Start as soon as Gradio has drawn the mount.
function start() {
  const mount = document.getElementById("reasoner");
  if (!mount) return setTimeout(start, 30);
  if (root === mount) return;
  root = frame(mount);
  document.addEventListener("click", onLink);
  addEventListener("popstate", show);
  addEventListener("keydown", onKey);
  show();
  setTimeout(poll, POLL_MILLISECONDS);
}

start();
