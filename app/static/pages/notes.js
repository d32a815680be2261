// Starred and noted rollouts.
import { ago, ask, el, empty, link, put, table, verdict, visible } from "../core.js";

export async function open(root, page) {
  const { run } = page.params;
  async function draw() {
    const { rows } = await ask("notes", { run });
    put(root, el("h1", {}, "Notes"), rows.length
      ? table(["", "rollout", "verdict", "problem", "note", "when", "begins"], rows.map((row) => el("tr", { data: { note: row.name } }, [row.star ? "★" : "", link("rollouts", { run, rollout: row.name }, row.name), row.is_missing ? "no longer there" : verdict(row.verdict), visible(row.problem ?? ""), el("div", { class: "text", dir: "auto" }, row.note), ago(row.time), visible(row.head ?? "")].map((cell) => el("td", {}, cell)))))
      : empty("Nothing is starred yet: press s on a rollout to star it, n to write a note."));
  }
  await draw();
  return { live: draw };
}
