// All runs: what state they are in and how good they got.
import { address, ago, ask, card, duration, el, empty, link, number, percent, put } from "../core.js";

function sparkline(values) {
  const canvas = el("canvas", { width: "120", height: "24", class: "spark", role: "img", "aria-label": `correct, from ${percent(values[0])} to ${percent(values[values.length - 1])}` });
  requestAnimationFrame(() => {
    const c = canvas.getContext("2d");
    c.strokeStyle = getComputedStyle(canvas).color;
    c.lineWidth = 1.5;
    c.beginPath();
    values.forEach((v, i) => c[i ? "lineTo" : "moveTo"](2 + (i / Math.max(1, values.length - 1)) * 116, 22 - v * 20));
    c.stroke();
  });
  return canvas;
}

export async function open(root, page) {
  const chosen = new Set();
  let sort = page.params.sort ?? "began";
  const compare = el("button", { disabled: true, onclick: () => page.go("compare", { runs: [...chosen].join(",") }) }, "compare");
  const body = el("div");
  put(root, el("div", { class: "bar-row" }, el("h1", {}, "Runs"), compare), body);

  const SORTS = { began: (r) => -(r.began ?? 0), name: (r) => r.name, step: (r) => -(r.step ?? 0), "pass@1": (r) => -(r.metrics?.["pass@1"] ?? -1) };
  const head = (key, title) => el("button", { class: "head", "aria-pressed": String(sort === key), onclick: () => { sort = key; page.set({ sort }); draw(); } }, title);

  async function draw() {
    const { runs, folder } = await ask("runs");
    if (!runs.length) return put(body, empty(`There is no run in ${folder} yet.`, "reasoner train --model base"));
    const by = SORTS[sort] ?? SORTS.began;
    runs.sort((a, b) => (by(a) > by(b) ? 1 : by(a) < by(b) ? -1 : 0));
    put(body, el("div", { class: "scroll" }, el("table", { class: "runs" },
      el("thead", {}, el("tr", {}, ["", head("name", "run"), "state", head("step", "step"), "left", "model", "algorithm", head("pass@1", "pass@1"), "cons@k", "correct", head("began", "began")].map((h) => el("th", {}, h)))),
      el("tbody", {}, runs.map((row) => row.fault
        ? el("tr", { class: "damaged" }, el("td", {}), el("td", {}, row.name), el("td", { colspan: "9" }, el("span", { class: "badge bad" }, "damaged"), ` ${row.fault}`))
        : el("tr", { data: { run: row.name } },
          el("td", {}, el("input", { type: "checkbox", "aria-label": `choose ${row.name}`, checked: chosen.has(row.name), onchange: (event) => {
            chosen[event.target.checked ? "add" : "delete"](row.name);
            compare.disabled = chosen.size < 2;
          } })),
          el("td", {}, link(row.step || row.status !== "imported" ? "overview" : "rollouts", { run: row.name }, row.name)),
          el("td", {}, el("span", { class: `dot ${row.status}` }, row.status), row.alarms ? [" ", el("span", { class: "badge bad", data: { alarms: row.alarms } }, `${row.alarms} alarm${row.alarms > 1 ? "s" : ""}`)] : null),
          el("td", { class: "n" }, `${number(row.step)} / ${row.steps ?? "–"}`),
          el("td", { class: "n" }, duration(row.left)),
          el("td", {}, row.model ?? "–"), el("td", {}, row.algorithm ?? "–"),
          el("td", { class: "n" }, percent(row.metrics["pass@1"])),
          el("td", { class: "n" }, percent(Object.entries(row.metrics).find(([name]) => name.startsWith("cons@"))?.[1])),
          el("td", {}, row.correct.length > 1 ? sparkline(row.correct) : "–"),
          el("td", {}, ago(row.began))))))),
    el("p", { class: "muted" }, "pass@1 and cons@k: the latest validation on the validation problems. A run is live while its process holds its lock; stopped means killed or failed: ",
      el("code", {}, "reasoner train --resume NAME"), " goes on."));
  }
  await draw();
  return { live: draw };
}
