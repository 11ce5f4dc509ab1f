from baselines.bench.monitor import Monitor

__all__ = ["Monitor"]
