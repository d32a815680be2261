// The completions of one question side by side: how each reward became its advantage, and what differs.
import { about, difference, marked, marksOf } from "../text.js";
import { ask, card, el, link, number, put, select, signed, verdict, visible } from "../core.js";

// The two published formulas, from this group's rewards (Shao et al. 2024; Liu et al. 2025).
const FORMULAS = {
  grpo: ["(reward − mean) / std", (r, mean, std) => (std ? (r - mean) / std : 0)],
  dr_grpo: ["reward − mean", (r, mean, std) => (std ? r - mean : 0)],
};

function thoughts(spans) {
  const counts = new Map();
  for (const span of spans) counts.set(span.label, (counts.get(span.label) ?? 0) + 1);
  return el("span", { title: spans.map(about).join("\n") }, [...counts].map(([label, n]) => `${n} × ${label}`).join(", "));
}

export async function open(root, page) {
  const { run } = page.params;
  const at = () => ({ step: Number(page.params.step ?? 0), group: Number(page.params.group ?? 0) });
  let pair = [page.params.a, page.params.b];

  async function draw() {
    const found = await ask("group", { run, ...at() });
    const flat = found.std === 0;
    const members = [...found.members].sort((a, b) => b.reward - a.reward || a.sample - b.sample);
    const most = Math.max(...members.map((m) => Math.abs(m.reward)), 1e-9), far = Math.max(...members.map((m) => Math.abs(m.advantage)), 1e-9);
    let index = Math.max(0, members.findIndex((m) => m.name === page.params.rollout));
    const [first, last] = found.groups;
    const where = (group) => ({ run, step: found.step, group });
    put(root,
      el("div", { class: "bar-row" }, el("h1", {}, `Step ${found.step}, group ${found.group}`),
        found.group > first ? link("group", where(found.group - 1), "← group") : null, found.group < last ? link("group", where(found.group + 1), "group →") : null,
        link("problem", { run, id: found.problem }, "the problem across steps"), link("rollouts", { run, step: found.step, problem: found.problem }, "in the list")),
      el("div", { class: "question" }, el("small", {}, visible(found.problem)), el("div", { class: "text", dir: "ltr" }, found.question), el("small", {}, `gold: ${visible(found.gold)}`)),
      card(null, el("p", { data: { formula: "" } },
        `${found.correct} of ${members.length} right · ${found.unique_answers} different answers${found.duplicates ? ` · ${found.duplicates} word-for-word repeats` : ""} · mean reward `, el("b", { data: { mean: String(found.mean) } }, number(found.mean, 3)), " · deviation ", el("b", { data: { std: String(found.std) } }, number(found.std, 3)), " · ",
        flat ? el("span", { class: "badge warn", data: { flat: "" } }, "all rewards equal: no gradient from this group")
          : `sum of advantages ${Math.abs(members.reduce((sum, m) => sum + m.advantage, 0)).toFixed(3)}`),
      el("p", { class: "muted" }, `advantage as trained (${found.algorithm ?? "unknown"}); beside it what the published formulas make of the same rewards: `,
        Object.entries(FORMULAS).map(([name, [text]]) => [el("b", {}, name), ` ${text}; `])),
      el("div", { class: "scroll" }, el("table", { class: "members" },
        el("thead", {}, el("tr", {}, ["rollout", "verdict", "answer", "reward", "", "advantage", "", ...Object.keys(FORMULAS), "tokens", "reflection spans"].map((h) => el("th", {}, h)))),
        el("tbody", {}, members.map((m) => el("tr", { data: { member: m.name } }, [
          link("rollouts", { run, rollout: m.name }, m.name), verdict(m.verdict), visible(m.extracted ?? "none"), number(m.reward),
          el("span", { class: "track" }, el("i", { style: { width: `${(100 * Math.abs(m.reward)) / most}%` } })),
          el("b", { class: m.advantage > 0 ? "up" : m.advantage < 0 ? "down" : "", data: { advantage: String(m.advantage) } }, signed(m.advantage, 3)),
          el("span", { class: "track both" }, el("i", { class: m.advantage >= 0 ? "up" : "down", style: { width: `${(50 * Math.abs(m.advantage)) / far}%`, [m.advantage >= 0 ? "left" : "right"]: "50%" } })),
          ...Object.values(FORMULAS).map(([, of]) => signed(of(m.reward, found.mean, found.std), 3)), number(m.tokens),
          thoughts(m.spans)].map((cell) => el("td", {}, cell)))))))),
      el("div", { class: "columns", data: { columns: "" } }, members.map((m, i) => el("article", { class: `card ${i === index ? "now" : ""}`, data: { column: m.name } },
        el("div", { class: "bar-row" }, el("b", {}, m.name), verdict(m.verdict), el("span", { class: m.advantage > 0 ? "up" : "down" }, signed(m.advantage))),
        marked(m.completion, marksOf(m.completion, m.spans))))),
      card("Word by word", el("div", { class: "bar-row" },
        select("A", members.map((m) => m.name), pair[0] ?? members[0].name, (v) => { pair[0] = v; page.set({ a: v }); compare(); }),
        select("B", members.map((m) => m.name), pair[1] ?? members[members.length - 1].name, (v) => { pair[1] = v; page.set({ b: v }); compare(); })), el("div", { class: "grid two", data: { diff: "" } })));
    const names = members.map((m) => m.name);
    pair = [pair[0] ?? names[0], pair[1] ?? names[names.length - 1]];
    await compare();
    const walk = (by) => {
      index = (index + by + members.length) % members.length;
      page.set({ rollout: members[index].name });
      root.querySelectorAll(".columns article").forEach((one, i) => { one.classList.toggle("now", i === index); if (i === index) one.scrollIntoView({ block: "nearest", inline: "center" }); });
    };
    return { h: () => walk(-1), l: () => walk(1), J: () => found.group < last && page.go("group", where(found.group + 1)), K: () => found.group > first && page.go("group", where(found.group - 1)), j: () => walk(1), k: () => walk(-1) };
  }
  async function compare() {
    const found = await ask("difference", { run, a: pair[0], b: pair[1] });
    const same = found.pieces.every(([kind]) => kind === "same");
    put(root.querySelector("[data-diff]"), ["a", "b"].map((side) => el("div", {}, el("small", {}, `${side.toUpperCase()}: ${found[side]}${same ? " (the same text)" : ""}`), difference(found.pieces, side))));
  }
  return { keys: await draw() };
}
