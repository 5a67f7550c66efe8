"""Takes turns inside a semaphore, together with everybody else who uses its name.

    python3 demo.py NAME [--limit N] [--weight N] [--ttl S] [--hold S] [--turns N] [--timeout S] [--try | --campaign] [--url URL]
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))  # or pip install it
import signalbox  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Take turns inside a semaphore.")
    parser.add_argument("name")
    parser.add_argument("--limit", type=int, default=2, help="how many may be inside (default 2)")
    parser.add_argument("--weight", type=int, default=1, help="how many permits to hold")
    parser.add_argument("--ttl", type=float, default=10, help="seconds for which the permits outlive a crash")
    parser.add_argument("--hold", type=float, default=3, help="seconds to stay inside")
    parser.add_argument("--turns", type=int, default=1, help="how often to go inside")
    parser.add_argument("--timeout", type=float, help="seconds to wait at most")
    parser.add_argument("--try", dest="attempt", action="store_true", help="do not wait")
    parser.add_argument("--campaign", action="store_true", help="win the election of that name, instead")
    parser.add_argument("--url", default=os.environ.get("SIGNALBOX_URL") or "redis://localhost:6379")
    return parser.parse_args()


def say(text: str) -> None:
    # One write a line: others write to the same terminal.
    sys.stdout.write(f"python:{os.getpid()} {text}\n")
    sys.stdout.flush()


def turn(semaphore: signalbox.Semaphore, args: argparse.Namespace) -> None:
    terms = {"weight": args.weight, "ttl": args.ttl, "label": "demo.py"}
    if args.campaign:
        lease = semaphore.box.election(args.name).campaign(ttl=args.ttl, label="demo.py", timeout=args.timeout)
    elif args.attempt:
        lease = semaphore.try_acquire(**terms)
    else:
        lease = semaphore.acquire(
            **terms, timeout=args.timeout, on_wait=lambda ahead: say(f"waits with {ahead} ahead"))
    with lease:
        say(f"is inside with token {lease.token}")
        lease.lost.wait(args.hold)  # the work would be here, and would stop when the lease is lost
        lease.check()
        say("goes")


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also when started in the background
    with signalbox.Box(args.url) as box:
        semaphore = box.semaphore(args.name, args.limit)
        try:
            for _ in range(args.turns):
                turn(semaphore, args)
        except signalbox.Error as error:
            say(f"{type(error).__name__}: {error}")
            return 1
        except KeyboardInterrupt:
            say("gives up")
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
