from baselines.common.lazy import learn_of

__getattr__, __dir__ = learn_of(__name__)
