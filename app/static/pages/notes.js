// Rollouts with a star or a note, all or those with a tag.
import { age, ask, el, empty, link, put, table, tableRow, updateAges, verdictBadge, visible } from "../core.js";

export async function open(root, page) {
  const { run } = page.params;
  let tag = page.params.tag ?? "", data = null;
  // A row of the table; the rollout may be missing, if the run was trained again.
  const noteRow = (row) => tableRow([
    row.star ? "★" : "", link("rollouts", { run, rollout: row.name }, row.name), row.is_missing ? "missing" : verdictBadge(row.verdict),
    visible(row.problem ?? ""), el("div", { class: "text", dir: "auto" }, row.note), age(row.time), visible(row.head ?? ""),
  ], { data: { note: row.name } });
  // Ask again. Only news are drawn: drawing takes the focus and the selection away.
  async function load() {
    const reply = await ask("notes", { run });
    if (JSON.stringify(reply) === JSON.stringify(data)) return updateAges(root);
    data = reply;
    return draw();
  }
  function draw() {
    const { rows: all, tags } = data, rows = all.filter((row) => !tag || row.tags.includes(tag));
    const choose = (name) => { tag = name; page.set({ tag }); draw(); };
    const button = ([name, n]) => el("button", { "aria-pressed": String(name === tag), data: { tag: name }, onclick: () => choose(name === tag ? "" : name) }, `#${name} ${n}`);
    put(root, el("div", { class: "bar-row" }, el("h1", {}, "Notes"), Object.entries(tags).map(button)), rows.length
      ? table(["", "rollout", "verdict", "problem", "note", "changed", "completion"], rows.map(noteRow))
      : empty(["There is no star or note yet. Open one of the ", link("rollouts", { run }, `rollouts of ${run}`),
        "; press s to star it, and n to write a note. Words like #slip in a note are tags. Stars and notes are listed here."]));
  }
  await load();
  return { live: load };
}
