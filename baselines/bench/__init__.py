from baselines.bench.monitor import Monitor, load_results

__all__ = ["Monitor", "load_results"]
