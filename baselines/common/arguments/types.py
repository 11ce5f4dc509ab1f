"""Arguments of ``learn()``: type, range and meaning, declared once in the annotation.

    nsteps: Annotated[Count, "steps of each environment in an update"] = 5

determines what the command line parses, what is checked before anything is built, and
what ``help(learn)`` and ``--help`` show. A range is a constraint from the package
``annotated-types``; a function among the annotations is a custom check, called with the
value and the argument's name. The markers below declare other properties.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

from annotated_types import Ge, Gt, Interval
from typing_extensions import TypedDict

from baselines.common.arguments.declaration import Argument
from baselines.common.arguments.parts import Part
from baselines.common.arguments.schedules import check_schedule


class Needs(NamedTuple):
    """Marks an argument that has no effect unless another one, ``switch``, is on."""

    switch: str


class NeedsNo(NamedTuple):
    """Marks an argument that has no effect if another one, ``switch``, is on."""

    switch: str


class MayChange:
    """Marks an argument that may have a different value when a run is resumed."""


class WrittenPath:
    """Marks a path that a run writes to."""


class ReadPath:
    """Marks a path that a run reads, which may have moved when the run is resumed."""


MOST = 10**15  # limit of any count: a million agent steps a second for thirty years
Count = Annotated[int, Interval(ge=1, le=MOST)]
CountOrZero = Annotated[int, Interval(ge=0, le=MOST)]
# Weights between two layers with a million units each take 4 TB.
Units = Annotated[int, Interval(ge=1, le=10**6)]
Layers = Annotated[int, Interval(ge=0, le=1000)]  # which Keras builds in seconds
NonNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Fraction = Annotated[float, Interval(ge=0, le=1)]
Probability = Fraction
Schedule = Annotated[
    float | str | Callable,
    check_schedule,
    "a number, text such as linear:2.5e-4 (schedule and initial value), or in Python a "
    "function of the fraction of training that is done",
]
ScheduleOfNumbers = Literal[
    "constant", "linear", "middle_drop", "double_linear_con", "double_middle_drop"
]

# Shared by algorithms.
Path = str | os.PathLike  # in Python; text on the command line
if TYPE_CHECKING:

    class Environment(Protocol):
        """What VecEnvs and Gymnasium's environments have in common."""

        observation_space: Any
        action_space: Any

else:
    Environment = Any
Env = Annotated[
    Environment,
    "a VecEnv, a Gymnasium Env, or a Gymnasium VectorEnv with same-step resets",
]
NETWORK = Part(
    "network", "baselines.common.networks.networks", ("trainable_variables",)
)
Network = Annotated[
    str | Callable,
    NETWORK,
    "name of a function in common/networks/networks.py, module:function, or in Python "
    "a function that returns a Keras layer; its arguments can be given as well",
]
VALUES = Part(
    "values", "baselines.common.networks.values", ("size", "mean", "targets", "losses")
)
Values = Annotated[
    str | Callable,
    VALUES,
    "name of a function in common/networks/values.py, such as scalar or categorical, "
    "module:function, or in Python a function; its arguments can be given as well",
]
Critic = Annotated[
    str | Callable,
    Part(
        "critic",
        "baselines.common.networks.critics",
        ("num_critics", "size", "value", "targets", "losses", "joint"),
    ),
    "kind of critics: name of a function in common/networks/critics.py, "
    "module:function, or in Python a function; its arguments can be given as well",
]
Reward = Annotated[
    str | Callable,
    Part(
        "reward",
        "baselines.common.data.rewards",
        ("begin", "__call__", "get_state or variables"),
        by_algorithm=("run", "policy"),
        in_model=False,
        when_loaded="environment",
    ),
    "rewards to learn from: name of a function in common/data/rewards.py, such as "
    "environment, module:function, or in Python a function; its arguments can be given "
    "as well",
]
Seed = Annotated[
    int | None,
    Interval(ge=0, le=2**32 - 1),
    MayChange,
    "seed of all random numbers; None for a random one",
]
Timesteps = Annotated[
    CountOrZero,
    MayChange,
    "agent steps to train, summed over all environments; an update that they do not "
    "fill is left out",
]
Gamma = Annotated[Fraction, "discount factor per agent step"]
Lambda = Annotated[Fraction, "lambda of generalised advantage estimation"]
GradientNorm = Annotated[
    Positive | None,
    "maximum global norm of the gradient; None for no limit",
]
VariableGradientNorm = Annotated[
    Positive | None,
    "maximum norm of each variable's gradient; None for no limit",
]
ExplorationFraction = Annotated[
    Fraction,
    "share of the run in which the probability of a random action falls from 1",
]
FinalEpsilon = Annotated[
    Probability, "last probability of a random action, which the returned model keeps"
]
Hiddens = Annotated[
    list[Units],
    "units of each layer between network and action values, in both streams if dueling",
]
AdamEpsilon = Annotated[
    Positive, NeedsNo("optimizer"), "epsilon of Adam, added to the denominator"
]
ValueNetwork = Annotated[
    str | Callable,
    NETWORK._replace(without=("shared", "copy"), prefix="value_"),
    "network of the value function: shared with the policy, a copy of its own, or "
    "another one, as for network, whose arguments begin with value_",
]
Distribution = Annotated[
    str | Callable | None,
    Part(
        "distribution",
        "baselines.common.networks.distribution_parts",
        ("head", "noise", "sample", "mode", "neglogp", "entropy"),
        by_algorithm=("space",),
    ),
    "distribution of actions: name of a function in "
    "common/networks/distribution_parts.py, module:function, or in Python a function; "
    "None for the one that suits the action space",
]
Optimizer = Annotated[
    str | Callable | None,
    Part(
        "optimizer",
        "baselines.common.updates.optimizers",
        ("apply",),
        by_algorithm=("learning_rate", "clipnorm", "global_clipnorm"),
        in_model=False,
    ),
    "name of a function in common/updates/optimizers.py, module:function, or in Python "
    "a function that returns a Keras optimizer; None for the algorithm's own",
]
Memory = Annotated[
    str | Callable | None,
    Part(
        "replay memory",
        "baselines.common.data.replay_buffer",
        ("add", "sample", "update_priorities", "get_state"),
        by_algorithm=(
            "observation_space",
            "action_space",
            "size",
            "num_envs",
            "n_step",
            "gamma",
            "frame_stack",
            "seed",
        ),
        in_model=False,
    ),
    "replay memory of your own, module:function, or in Python a function or class, "
    "called as data/replay_buffer.py is; None for the one that other arguments choose",
]
NormalizeObservations = Annotated[
    bool,
    "whether the model normalises float observations by their running mean and "
    "standard deviation",
]
LrSchedule = Annotated[ScheduleOfNumbers, "schedule of lr if it is a number"]
LogInterval = Annotated[Count, MayChange, "updates between rows of the log"]
Callback = Annotated[
    Callable | None,
    "called as callback(locals(), globals()) after each update, before its row is "
    "logged; a true result stops training",
]


Trust = Annotated[
    bool,
    MayChange,
    "whether to import code outside this package that the run's files name, and to "
    "write files that they name",
]


class Default(NamedTuple):
    """Has the default of an argument that is in no signature; the last marker."""

    value: Any


class SharedArguments(TypedDict, total=False):
    """What every ``learn()`` takes and only ``Run`` uses."""

    checkpoint_interval: Annotated[
        CountOrZero,
        MayChange,
        "agent steps between checkpoints in the log folder, rounded up to whole "
        "updates; 0 for none",
        Default(100_000),
    ]
    eval_env: Annotated[
        Environment | None,
        "environment to evaluate the model in, as env; the command line makes it",
        Default(None),
    ]
    eval_interval: Annotated[
        CountOrZero,
        MayChange,
        "agent steps between evaluations of the model, with deterministic actions; the "
        "best model is kept as best_model.safetensors in the log folder; 0 for none",
        Default(0),
    ]
    eval_episodes: Annotated[
        Count,
        MayChange,
        Needs("eval_interval"),
        "episodes per evaluation",
        Default(10),
    ]
    stop_at: Annotated[
        float | None,
        MayChange,
        "mean return at which training stops: that of an evaluation, or without "
        "evaluations that of the last 100 episodes",
        Default(None),
    ]
    on_update: Annotated[
        Callable | None,
        "called as on_update(run) after each update, before its row is logged: "
        "run.num_timesteps, run.row (a dict to add to, or None), run.episodes, "
        "run.new_episodes, run.model; a true result stops training",
        Default(None),
    ]
    precision: Annotated[
        Literal["float32", "bfloat16", "auto"],
        "number format of the networks' layers; auto is bfloat16 where the processor "
        "or GPU supports it, else float32. Weights, heads, losses and optimisers are "
        "always float32",
        Default("float32"),
    ]
    normalize_rewards: Annotated[
        bool,
        "whether to divide rewards by the running standard deviation of discounted "
        "returns, unless a wrapper does so already",
        Default(False),
    ]
    defaults: Annotated[
        bool,
        MayChange,
        "whether the algorithm's defaults.py for this kind of environment overrides "
        "the defaults below",
        Default(True),
    ]
    load_path: Annotated[
        Path | None,
        ReadPath,
        "a saved model, or log folder of one, to start from; a resumed run that has a "
        "checkpoint continues from that",
        Default(None),
    ]
    overwrite: Annotated[
        bool,
        MayChange,
        NeedsNo("resume"),
        "whether to replace an existing run in the log folder, and files at other "
        "given paths",
        Default(False),
    ]
    resume: Annotated[
        Path | None,
        MayChange,
        "log folder of an interrupted run to continue, bit for bit; besides "
        "total_timesteps, only arguments that do not affect what is learned may differ",
        Default(None),
    ]
    trust: Annotated[Trust, Default(False)]


SHARED_ARGUMENTS = {
    name: Argument(name, annotation, annotation.__metadata__[-1].value)
    for name, annotation in SharedArguments.__annotations__.items()
}


class PartArguments(TypedDict, total=False):
    """Arguments of the functions that parts can be, by name."""

    num_layers: int
    num_hidden: int
    activation: str
    layer_norm: bool
    batch_renorm: bool
    width: float
    dense_layer: bool
    convs: Sequence[Sequence[int]]
    depths: Sequence[int]
    nlstm: int
    image_network: str
    value_num_layers: int
    value_num_hidden: int
    value_activation: str
    value_layer_norm: bool
    value_batch_renorm: bool
    value_width: float
    value_dense_layer: bool
    value_convs: Sequence[Sequence[int]]
    value_depths: Sequence[int]
    value_nlstm: int
    value_image_network: str
    atoms: int
    v_min: float
    v_max: float
    num_quantiles: int
    num_critics: int
    dropped_quantiles: int
    state_dependent: bool
    beta_1: float
    weight_decay: float
    rho: float
    momentum: float


class Others(SharedArguments, PartArguments, total=False):
    """What ``learn()`` takes besides the arguments in its signature."""


# Shared by commands that load a trained model.
PlayedEnv = Annotated[str | None, "environment to play in (default: the run's)"]
Deterministic = Annotated[
    bool | None,
    "whether to take the most likely or best actions, or to sample them (default: take "
    "them, except in Atari and retro games)",
]
ActingPrecision = Annotated[
    Literal["float32", "bfloat16", "auto"] | None,
    "number format of the networks' layers (default: as in training)",
]

# Shared by off-policy algorithms.
BufferSize = Annotated[Count, "transitions in the replay memory"]
BatchSize = Annotated[Count, "transitions per optimiser step"]
LearningStarts = Annotated[CountOrZero, "agent steps before the first optimiser step"]
RandomSteps = Annotated[
    CountOrZero, "agent steps with random actions, before the first optimiser step"
]
TrainFreq = Annotated[
    Count, "agent steps, over all environments, from one training to the next"
]
GradientSteps = Annotated[
    Count, "optimiser steps of each training, of critics if there are any"
]
PolicyDelay = Annotated[
    Count,
    "optimiser steps of the critics per step of the policy and the target networks; "
    "training waits until so many are due",
]
TargetRate = Annotated[
    Fraction,
    "tau of Polyak averaging: target = (1 - tau) target + tau trained, per step",
]
NStep = Annotated[
    Count,
    "rewards that an n-step return sums before it bootstraps (Sutton 1988)",
]
ReplayK = Annotated[
    CountOrZero,
    "for goal environments: transitions relabelled with a goal that was achieved later "
    "in their episode, per transition with its own goal (Andrychowicz et al. 2017); 0 "
    "for none",
]
ClipReturn = Annotated[
    bool,
    "whether to clip targets to the returns of rewards from -1 to 0, which lie between "
    "-1 / (1 - gamma) and 0 (Andrychowicz et al. 2017)",
]
PrintFreq = Annotated[Count, MayChange, "episodes between rows of the log"]
CheckpointFreq = Annotated[
    CountOrZero,
    "agent steps between comparisons of the mean return of the last 100 episodes, once "
    "training has begun; the weights with the best mean are returned; 0 for the last "
    "weights",
]
CheckpointPath = Annotated[
    Path | None,
    MayChange,
    WrittenPath,
    Needs("checkpoint_freq"),
    "folder in which the best model so far is saved as best.safetensors; None for "
    "memory only",
]
PrioritizedReplay = Annotated[
    bool, "whether transitions are sampled by their TD errors (Schaul et al. 2016)"
]
PriorityExponent = Annotated[
    Fraction, Needs("prioritized_replay"), "priority exponent alpha"
]
ImportanceExponent = Annotated[
    Fraction,
    Needs("prioritized_replay"),
    "initial importance sampling exponent beta, which rises to 1",
]
ImportanceSteps = Annotated[
    Count | None,
    Needs("prioritized_replay"),
    "agent steps over which beta rises to 1; None for total_timesteps",
]
PriorityOffset = Annotated[
    Positive, Needs("prioritized_replay"), "added to each TD error"
]
