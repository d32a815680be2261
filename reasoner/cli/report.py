"""`reasoner report`: a run's report."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_json, add_option, add_run, write_result
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_report)
    add_run(command)
    add_json(command, "the paths")


def run_report(args: argparse.Namespace) -> None:
    """Write report.md and report.png, and print their paths."""
    from reasoner.analysis.run_report import write_report
    from reasoner.runs.run_dir import find_run

    paths = [str(path) for path in write_report(find_run(args.name, args.runs))]
    print_result("\n".join(paths))
    write_result(args, paths)


def add_publish_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_publish)
    add_run(command)
    add_option(command, "--html", "write one HTML file that opens from disk", kind=Path)
    add_option(command, "--space", "write a Gradio Space into a new folder", kind=Path, metavar="FOLDER")
    add_option(command, "--rollouts", "most rollouts in the HTML file, in whole groups", 1000)


def run_publish(args: argparse.Namespace) -> None:
    from app.publish import write_html
    from app.space import write_space
    from reasoner.runs.run_dir import find_run

    if args.html is None and args.space is None:
        raise ValueError("nothing to write: add --html FILE or --space FOLDER")
    run_dir = find_run(args.name, args.runs).resolve()
    if args.html is not None:
        publication = write_html(run_dir, args.html, most=args.rollouts)
        megabytes = args.html.stat().st_size / 1e6
        print_result(f"{args.html}: {megabytes:.1f} MB, {publication.rollouts:,} rollouts ({publication.selection})")
    if args.space is not None:
        write_space(run_dir, args.space)
        print_result(f"{args.space}: a Gradio Space; try it with python space.py in the folder, its README says how")
