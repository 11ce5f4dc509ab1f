"""Measurements of this project, run from the top folder of a checkout.

    python -m benchmarks.throughput --alg=a2c

They are no part of the installed package. What they found is in ``results/``.
"""
