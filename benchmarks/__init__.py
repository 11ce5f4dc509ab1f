"""Measurements of this project, run from the top folder of a checkout.

    python -m benchmarks.throughput --alg=a2c

They are not part of the installed package. Their results are in ``results/``.
"""

import baselines  # noqa: F401  It has to be imported before Keras, to choose kernels.
