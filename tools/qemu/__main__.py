"""`python -m tools.qemu COMMAND...`: runs a command as root in a guest with two NVMe drives.

Prints what the guest says. The exit status is the command's; 77 where this machine lacks something
that a guest needs, 1 where the command did not end in time, and 130 after Ctrl-C. To see that it
works: `python -m tools.qemu -- sh -c 'ls /sys/class/nvme; id -u'` prints nvme0, nvme1 and 0.
"""

from __future__ import annotations

import argparse
import sys

from .guest import SECONDS, GuestError, boot
from .kernel import UnavailableError

SKIPPED = 77
"""The exit status of a test that was skipped, as Automake has it."""

INTERRUPTED = 130
"""The exit status of a program that was interrupted, as shells have it."""


def main() -> int:
    """Boots a guest for the command that was given."""
    parser = argparse.ArgumentParser(prog="python -m tools.qemu", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for boot and command")
    parser.add_argument("command", nargs="+", help="after `--`, where it has options")
    given = parser.parse_args()
    try:
        return boot(given.command, seconds=given.seconds).status
    except UnavailableError as error:
        print(f"qemu: skipped: {error}", file=sys.stderr)
        return SKIPPED
    except GuestError as error:
        print(f"qemu: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
