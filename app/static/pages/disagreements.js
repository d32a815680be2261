// Disagreements between graders: ours, math-verify and the majority of a group, with verdicts by hand.
import { ask, count, el, empty, isOffered, latestOnly, link, number, percent, put, visible } from "../core.js";

const WORDS = new Map([[true, ["correct", "good"]], [false, ["wrong", "bad"]], [null, ["undecided", "neutral"]]]);

// A badge with what a grader says.
function opinion(name, verdict, words = WORDS.get(verdict)) {
  return el("span", { data: { grader: name, verdict: words[0] } }, `${name} `, el("span", { class: `badge ${words[1]}` }, words[0]));
}

export async function open(root, page) {
  const { run } = page.params;
  const askDisagreements = latestOnly();
  let steps = page.params.steps ?? "", data;
  let judging = Promise.resolve();  // one verdict after the other: the last one counts
  const head = el("div", { class: "bar-row" }), fault = el("p", { class: "error", role: "alert" }), cards = el("div", { class: "gallery" });
  const input = el("input", {
    value: steps, "aria-label": "steps", placeholder: "the last; 12 or 10:20", data: { search: "" },
    onchange: (event) => { steps = event.target.value.trim(); page.set({ steps }); load(); },
  });

  // An answer with the opinions, and the buttons of the verdict by hand.
  function card(item) {
    const why = el("input", {
      "aria-label": "reason", placeholder: "why (optional)", value: item.reason ?? item.case?.why ?? "",
      oninput: () => { item.reason = why.value; },  // which stays when the verdict of another answer draws the cards again
    });
    const judge = (correct) => { judging = judging.then(() => send(correct, why.value)); };
    const send = async (correct, reason) => {
      try {
        item.case = await ask("judge_answer", {
          run, question: item.question, gold: item.gold, answer: item.answer, verifier: item.verifier, correct, why: reason,
        });
        draw();
      } catch (error) { fault.textContent = error.message; }
    };
    const button = (correct, text) => el("button", { "aria-pressed": String(item.case?.correct === correct), onclick: () => judge(correct) }, text);
    return el("article", { class: "card", data: { answer: item.answer, decided: String(Boolean(item.case)) } },
      el("small", {}, visible(item.question)),
      el("p", {}, "gold ", el("code", {}, visible(item.gold)), " · answer ", el("code", {}, visible(item.answer))),
      el("div", { class: "bar-row" }, opinion("ours", item.is_correct), opinion("math-verify", item.math_verify),
        item.majority === null ? null : opinion("majority", true, [`${percent(item.majority, 0)} of the group`, "warn"])),
      el("p", {}, count(item.count, "rollout"), ": ", item.rollouts.map((name) => [link("rollouts", { run, rollout: name }, name), " "])),
      isOffered("judge_answer") ? el("div", { class: "bar-row" }, button(true, "correct"), button(false, "wrong"), why,
        item.case ? el("small", { role: "status" }, `case ${item.case.id}: ${item.case.correct ? "correct" : "wrong"}`) : null) : null);
  }
  function draw() {
    const open = data.items.filter((item) => !item.case), done = data.items.filter((item) => item.case);
    const range = data.steps ? (data.steps[0] === data.steps[1] ? `step ${data.steps[0]}` : `steps ${data.steps[0]} to ${data.steps[1]}`) : "no step";
    put(head, el("h1", {}, "Disagreements"), el("label", {}, "steps ", input),
      el("span", { class: "muted", data: { done: String(done.length) } },
        `${range}: ${count(data.rollouts, "rollout")}, ${count(data.items.length, "answer")} on which graders disagree, ${number(done.length)} with a verdict by hand`));
    put(cards, data.items.length ? [...open, ...done].map(card) : empty("The graders agree on every answer of these steps."));
  }
  async function load() {
    try {
      fault.textContent = "";
      const reply = await askDisagreements("disagreements", { run, steps });
      if (!reply) return;
      data = reply;
      draw();
    } catch (error) { fault.textContent = error.message; }
  }
  put(root, head, el("p", { class: "muted" }, "Answers that our grader and math-verify judge differently, and answers that most completions of a group ",
    "agree on and that are graded wrong: there the gold answer or the grader may be. A verdict by hand becomes a line of ",
    el("code", {}, `${run}/grading_cases.jsonl`), ", which ", el("code", {}, "reasoner grade"), " reads."), fault, cards);
  put(head, el("h1", {}, "Disagreements"), el("span", { class: "muted" }, "math-verify is judging …"));
  await load();
  return {};
}
