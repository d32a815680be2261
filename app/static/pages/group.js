// The completions of one prompt side by side: how each reward became its advantage, and the difference of two texts.
import { ask, card, count, el, link, number, put, signClass, table, tableRow, verdictBadge, visible, withSign } from "../core.js";
import { differenceCard } from "../difference.js";
import { markSpans, marksOf, spanTitle } from "../text.js";

// The two published formulas, from this group's rewards (Shao et al. 2024; Liu et al. 2025).
const FORMULAS = {
  grpo: ["(reward − mean) / std", (reward, mean, std) => (std ? (reward - mean) / std : 0)],
  dr_grpo: ["reward − mean", (reward, mean, std) => (std ? reward - mean : 0)],
};

// The largest absolute value, not 0.
const largest = (values) => Math.max(...values.map(Math.abs), 1e-9);

// The number of reflection spans by label.
function spanCounts(spans) {
  const counts = new Map();
  for (const span of spans) counts.set(span.label, (counts.get(span.label) ?? 0) + 1);
  return el("span", { title: spans.map(spanTitle).join("\n") }, [...counts].map(([label, n]) => `${n} × ${label}`).join(", "));
}

// The name of the group with links to its neighbours.
function heading(run, group) {
  const [first, last] = group.groups, neighbour = (number, text) => link("group", { run, step: group.step, group: number }, text);
  return el("div", { class: "bar-row" }, el("h1", {}, `Step ${group.step}, group ${group.group}`),
    group.group > first ? neighbour(group.group - 1, "← group") : null, group.group < last ? neighbour(group.group + 1, "group →") : null,
    link("problem", { run, id: group.problem }, "the problem across steps"),
    link("rollouts", { run, step: group.step, problem: group.problem }, "in the list of rollouts"));
}

// Mean and deviation of the rewards, and what they say about the gradient.
function summary(group, members) {
  const repeats = group.duplicates ? ` · ${count(group.duplicates, "word-for-word repeat")}` : "";
  const sum = Math.abs(members.reduce((total, member) => total + member.advantage, 0)).toFixed(3);
  return el("p", {},
    `${group.correct} of ${members.length} correct · ${count(group.unique_answers, "different answer")}${repeats} · mean reward `,
    el("b", {}, number(group.mean, 3)), " · standard deviation ",
    el("b", {}, number(group.std, 3)), " · ",
    group.std === 0 ? el("span", { class: "badge warn", data: { zeroVariance: "" } }, "zero variance: no gradient from this group")
      : `sum of advantages ${sum}`);
}

// Rewards and advantages of the members, as numbers and bars.
function memberTable(run, group, members) {
  const mostReward = largest(members.map((member) => member.reward)), mostAdvantage = largest(members.map((member) => member.advantage));
  const heads = ["rollout", "verdict", "answer", "reward", "", "advantage", "", ...Object.keys(FORMULAS), "tokens", "reflection"];
  const row = (member) => tableRow([
    link("rollouts", { run, rollout: member.name }, member.name), verdictBadge(member.verdict), visible(member.extracted ?? "none"), number(member.reward),
    el("span", { class: "track" }, el("i", { style: { width: `${(100 * Math.abs(member.reward)) / mostReward}%` } })),
    el("b", { class: signClass(member.advantage), data: { advantage: String(member.advantage) } }, withSign(member.advantage, 3)),
    el("span", { class: "track both" }, el("i", {
      class: member.advantage >= 0 ? "up" : "down",
      style: { width: `${(50 * Math.abs(member.advantage)) / mostAdvantage}%`, [member.advantage >= 0 ? "left" : "right"]: "50%" },
    })),
    ...Object.values(FORMULAS).map(([, advantage]) => withSign(advantage(member.reward, group.mean, group.std), 3)), number(member.tokens),
    spanCounts(member.spans)]);
  return table(heads, members.map(row), "members");
}

// A member's text in its column.
const memberColumn = (member, isCurrent) =>
  el("article", { class: `card ${isCurrent ? "current" : ""}`, data: { column: member.name } },
    el("div", { class: "bar-row" }, el("b", {}, member.name), verdictBadge(member.verdict),
      el("span", { class: signClass(member.advantage) }, withSign(member.advantage))),
    markSpans(member.completion, marksOf(member.completion, member.spans)));

export async function open(root, page) {
  const { run } = page.params;
  const group = await ask("group", { run, step: Number(page.params.step ?? 0), group: Number(page.params.group ?? 0) });
  const members = [...group.members].sort((a, b) => b.reward - a.reward || a.sample - b.sample), names = members.map((member) => member.name);
  const pair = { a: page.params.a ?? names[0], b: page.params.b ?? names[names.length - 1] };
  const difference = differenceCard({ title: "Difference of two completions, word by word", run, options: names, pair, page });
  let index = Math.max(0, names.indexOf(page.params.rollout));

  put(root, heading(run, group),
    el("div", { class: "question" }, el("small", {}, visible(group.problem)), el("div", { class: "text", dir: "ltr" }, group.question),
      el("small", {}, `gold: ${visible(group.gold)}`)),
    card(null, summary(group, members),
      el("p", { class: "muted" }, `advantage: as used in training (${group.algorithm ?? "unknown"}). Beside it the advantages of the published formulas: `,
        Object.entries(FORMULAS).map(([name, [text]], i) => [i ? "; " : "", el("b", {}, name), ` ${text}`]), "."),
      memberTable(run, group, members)),
    el("div", { class: "columns" }, members.map((member, i) => memberColumn(member, i === index))),
    difference.card);
  await difference.draw();

  // Highlight the next or the previous completion.
  function walk(by) {
    index = (index + by + members.length) % members.length;
    page.set({ rollout: names[index] });
    root.querySelectorAll(".columns article").forEach((article, i) => {
      article.classList.toggle("current", i === index);
      if (i === index) article.scrollIntoView({ block: "nearest", inline: "center" });
    });
  }
  // Open the next or the previous group of the step.
  function openGroup(by) {
    const [first, last] = group.groups, next = group.group + by;
    if (next >= first && next <= last) page.go("group", { run, step: group.step, group: next });
  }
  return { keys: { h: () => walk(-1), l: () => walk(1), J: () => openGroup(1), K: () => openGroup(-1), j: () => walk(1), k: () => walk(-1) } };
}
