"""Write the pictures of docs/DASHBOARD.md from a run: `python scripts/screenshots.py RUNS RUN` (docs/app-*.png)."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.app.browsing import FLAGS, served

DOCS = Path(__file__).parents[1] / "docs"
LARGEST = 300_000  # bytes of a picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("run")
    parser.add_argument("--step", type=int, default=8, help="of the group that is shown")
    args = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with served(args.runs, args.runs / "none") as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        for name, path in {
            "overview": f"/overview?run={args.run}",
            "group": f"/group?run={args.run}&step={args.step}&group={_mixed_group(page, url, args.run, args.step)}",
            "reflection": f"/reflection?run={args.run}",
        }.items():
            page.set_viewport_size({"width": 1280, "height": 1260 if name == "reflection" else 860})
            page.goto(url + path)
            page.wait_for_selector('#reasoner[data-state="ready"]')
            if name == "reflection":
                steps = page.request.post(f"{url}/ask/overview", data={"run": args.run}).json()["row"]["step"]
                page.wait_for_selector(f'[data-analyzed="{steps}"]', timeout=600_000)
                page.wait_for_timeout(2500)  # the gallery of the whole run comes with the next poll
            page.wait_for_timeout(500)
            path = DOCS / f"app-{name}.png"
            page.screenshot(path=path)
            size = path.stat().st_size
            print(f"{path}: {size:,} bytes")
            if size > LARGEST:
                raise SystemExit(f"{path} is larger than {LARGEST:,} bytes")
        browser.close()


def _mixed_group(page: Page, url: str, run: str, step: int) -> int:
    """The group of the step that has the most to show: self-corrections, and both correct and wrong completions."""
    best, most = 0, -1
    for group in range(1000):
        reply = page.request.post(f"{url}/ask/group", data={"run": run, "step": step, "group": group})
        if not reply.ok:
            return best
        content = reply.json()
        num_corrections = sum(span["label"] != "cue" for member in content["members"] for span in member["spans"])
        score = num_corrections * min(content["correct"], len(content["members"]) - content["correct"])
        if score > most:
            best, most = group, score
    return best


if __name__ == "__main__":
    main()
