// Rollouts with a star or a note.
import { ago, ask, el, empty, link, put, table, tableRow, verdictBadge, visible } from "../core.js";

export async function open(root, page) {
  const { run } = page.params;
  // A row of the table; the rollout may be missing, if the run was trained again.
  const noteRow = (row) => tableRow([
    row.star ? "★" : "", link("rollouts", { run, rollout: row.name }, row.name), row.is_missing ? "missing" : verdictBadge(row.verdict),
    visible(row.problem ?? ""), el("div", { class: "text", dir: "auto" }, row.note), ago(row.time), visible(row.head ?? ""),
  ], { data: { note: row.name } });
  async function draw() {
    const { rows } = await ask("notes", { run });
    put(root, el("h1", {}, "Notes"), rows.length
      ? table(["", "rollout", "verdict", "problem", "note", "changed", "completion"], rows.map(noteRow))
      : empty("There is no star or note yet. On a rollout, press s to star it and n to write a note."));
  }
  await draw();
  return { live: draw };
}
