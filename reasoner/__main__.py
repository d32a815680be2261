"""`python -m reasoner`."""

import sys

from reasoner.cli.main import main

sys.exit(main())
