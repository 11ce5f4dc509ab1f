"""CSV files as pandas data frames."""

from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.base.lazy import import_extra


def read_table(path, **settings):
    """Returns the rows of a CSV file, whose first line names the columns.

    Args:
        path: of the file, compressed by gzip if it ends in ``.gz``.
        settings: further arguments of ``pandas.read_csv``.

    Returns:
        a ``pandas.DataFrame``.

    Raises:
        UserFileError: if it cannot be read.
        UserValueError: if it is not a table.
        MissingDependency: if pandas is not installed.
    """
    pandas = import_extra("pandas")
    try:
        return pandas.read_csv(path, **settings)
    except OSError as error:
        raise UserFileError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UserValueError(f"{path} is not a table: {error}") from None
