"""Runs jobs of a queue, or pushes one and waits for its result, together with everybody else who uses the queue.

    python3 jobs.py work QUEUE [--slots N] [--lease S] [--url URL]
    python3 jobs.py push QUEUE KIND ARGUMENTS [--id ID] [--url URL]

The worker knows three kinds: sum adds numbers, stay stays until it is told to end, flaky fails once.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))  # or pip install it
import signalbox  # noqa: E402


def say(text: str) -> None:
    # One write a line: others write to the same terminal.
    sys.stdout.write(f"python:{os.getpid()} {text}\n")
    sys.stdout.flush()


def work(args: argparse.Namespace) -> None:
    with signalbox.Queue(args.url, args.queue, lease=args.lease) as queue:
        worker = queue.worker("jobs.py", slots=args.slots)

        @worker.handle("sum")
        def add(job: signalbox.Job) -> float:
            say(f"runs {job.id} with token {job.token}")
            job.progress(50, "adding")
            return sum(job.args)

        @worker.handle("stay")
        def stay(job: signalbox.Job) -> None:
            say(f"stays with {job.id}")
            job.ending.wait()
            try:
                job.check()
            except signalbox.Error as error:
                say(f"leaves {job.id}: {type(error).__name__}")
                raise

        @worker.handle("flaky", backoff=lambda attempt: 0.01)
        def flaky(job: signalbox.Job) -> int:
            if job.attempt == 1:
                raise RuntimeError("not the first time")
            return job.attempt

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        worker.run()
        say("has ended")


def push(args: argparse.Namespace) -> None:
    with signalbox.Queue(args.url, args.queue) as queue:
        job = queue.enqueue(args.kind, json.loads(args.arguments), id=args.id)
        say(f"pushed {job.id}")
        say(f"result {json.dumps(job.result(60))}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run jobs, or push one.")
    commands = parser.add_subparsers(required=True)
    for name, do in (("work", work), ("push", push)):
        command = commands.add_parser(name)
        command.set_defaults(do=do)
        command.add_argument("queue")
        command.add_argument("--url", default=os.environ.get("SIGNALBOX_URL") or "redis://localhost:6379")
        if do is work:
            command.add_argument("--slots", type=int, default=2, help="jobs at once (default 2)")
            command.add_argument("--lease", type=float, default=15, help="seconds after which a dead worker is replaced")
        else:
            command.add_argument("kind")
            command.add_argument("arguments", help="JSON")
            command.add_argument("--id")
    args = parser.parse_args()
    try:
        args.do(args)
    except signalbox.Error as error:
        say(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
