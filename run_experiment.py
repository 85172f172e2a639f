"""Run the experiments: python3 run_experiment.py --help"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:  # PYTHONSAFEPATH leaves it out
    sys.path.insert(0, str(HERE))

from experiments.harness import command  # noqa: E402

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(command.main(sys.argv[1:], results=HERE / "results.json"))
