def __getattr__(name):
    # Keras is imported when learn() is asked for, not before.
    if name == "learn":
        from baselines.dqn.dqn import learn

        return learn
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
