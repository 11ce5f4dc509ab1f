from baselines.common.lazy import learn_of

__getattr__, __dir__ = learn_of(__name__, "load_act", "wrap_atari_dqn")
