from baselines.common.lazy import learn_of

__getattr__ = learn_of(__name__)
