from setuptools import setup

setup()  # The metadata is in pyproject.toml.
