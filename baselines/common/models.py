"""OpenAI Baselines' name for the networks."""

from baselines.common.networks.networks import (
    cnn,
    cnn_lnlstm,
    cnn_lstm,
    cnn_small,
    conv_only,
    impala_cnn,
    impala_cnn_lstm,
    lnlstm,
    lstm,
    mlp,
)

__all__ = [
    "cnn",
    "cnn_lnlstm",
    "cnn_lstm",
    "cnn_small",
    "conv_only",
    "impala_cnn",
    "impala_cnn_lstm",
    "lnlstm",
    "lstm",
    "mlp",
]
