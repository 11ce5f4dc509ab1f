"""What replaces modules of OpenAI Baselines that do not exist here under their names.

Importing one raises an error that names the replacement: this module is a finder in
``sys.meta_path``, asked after all others. ``docs/from_openai_baselines.md`` has the
same table.
"""

import sys

from baselines.common.errors import MovedModule, UserTypeError

MOMENTS = "use RunningMoments of baselines.common.running_moments"
GRADIENTS = "make_update of baselines.common.updates averages gradients over MPI ranks"
PPO1_COMMAND = "use commands such as python -m baselines.run --alg=ppo1 --env="
MOVED = {
    "baselines.a2c.runner": "use Runner of baselines.common.runners",
    "baselines.a2c.utils": "use baselines.common.layers and baselines.common.schedules",
    "baselines.acer.buffer": "use SequenceReplayBuffer of "
    "baselines.common.sequence_replay",
    "baselines.acer.policies": "use DiscreteActorCritic of "
    "baselines.common.discrete_actor_critic",
    "baselines.acer.runner": "use Player of baselines.common.off_policy",
    "baselines.acktr.kfac": "use KFAC of baselines.common.kfac",
    "baselines.acktr.kfac_utils": "use baselines.common.kronecker_factors",
    "baselines.acktr.utils": "use baselines.common.layers",
    "baselines.bench.benchmarks": "the folder benchmarks beside the package has what "
    "is measured, on which tasks",
    "baselines.common.cg": "use conjugate_gradient of baselines.common.trust_region",
    "baselines.common.console_util": "baselines.logger prints tables; for flags use "
    "argparse.BooleanOptionalAction",
    "baselines.common.dataset": "use Shuffler of baselines.common.runners",
    "baselines.common.input": "models take raw observations, which make_scaling of "
    "baselines.common.model prepares",
    "baselines.common.math_util": "use gae, n_step and explained_variance of "
    "baselines.common.returns",
    "baselines.common.mpi_adam": GRADIENTS,
    "baselines.common.mpi_adam_optimizer": GRADIENTS,
    "baselines.common.mpi_fork": "start the program with mpiexec -n",
    "baselines.common.mpi_moments": f"{MOMENTS}, or mean of baselines.common.mpi",
    "baselines.common.mpi_running_mean_std": MOMENTS,
    "baselines.common.mpi_util": "use baselines.common.mpi",
    "baselines.common.running_mean_std": MOMENTS,
    "baselines.common.segment_tree": "use SumTree of "
    "baselines.common.prioritized_replay",
    "baselines.common.tests": "tests are in the folder tests beside the package",
    "baselines.common.tf_util": "use keras and keras.ops; models have save() and "
    "load()",
    "baselines.common.tile_images": "use tile_images of "
    "baselines.common.vec_env.vec_env",
    "baselines.common.vec_env.util": "wrap environments with Dict observations in "
    "gymnasium.wrappers.FlattenObservation",
    "baselines.common.wrappers": "use ClipActions of baselines.common.envs.spaces and "
    "gymnasium.wrappers.TimeLimit",
    "baselines.ddpg.ddpg_learner": "use ActorCritic of baselines.common.actor_critic",
    "baselines.ddpg.memory": "use baselines.common.replay_buffer",
    "baselines.ddpg.models": "use ActorCritic of baselines.common.actor_critic",
    "baselines.ddpg.noise": "use ActionNoise of baselines.common.action_noise",
    "baselines.deepq.build_graph": "use dqn_loss and q_targets of baselines.dqn.dqn "
    "with make_update of baselines.common.updates",
    "baselines.deepq.experiments": "use commands such as python -m baselines.run "
    "--alg=deepq --env=CartPole-v1",
    "baselines.deepq.models": "use QFunction of baselines.common.q_function",
    "baselines.deepq.replay_buffer": "use baselines.common.replay_buffer and "
    "baselines.common.prioritized_replay",
    "baselines.deepq.utils": "models take arrays of raw observations",
    "baselines.gail.behavior_clone": "use --alg=gail --pretrained, or clone of "
    "baselines.gail.gail",
    "baselines.gail.dataset": "use read_expert of baselines.gail.expert; python -m "
    "baselines.gail.record writes such files",
    "baselines.gail.mlp_policy": "use Policy of baselines.common.policies",
    "baselines.gail.run_mujoco": "use commands such as python -m baselines.run "
    "--alg=gail --env=Hopper-v4 --expert_path=expert.npz",
    "baselines.gail.statistics": "baselines.logger prints tables",
    "baselines.gail.trpo_mpi": "use baselines.gail.gail",
    "baselines.her.actor_critic": "use ActorCritic of baselines.common.actor_critic",
    "baselines.her.ddpg": "use baselines.ddpg.ddpg",
    "baselines.her.experiment": "use commands such as python -m baselines.run "
    "--alg=her --env=FetchReach-v4",
    "baselines.her.her_sampler": "use baselines.common.hindsight_replay",
    "baselines.her.normalizer": "use Normalizer of baselines.common.normalizer",
    "baselines.her.replay_buffer": "use baselines.common.hindsight_replay",
    "baselines.her.rollout": "use Player of baselines.common.off_policy",
    "baselines.her.util": "nothing takes its place",
    "baselines.ppo1.cnn_policy": "name the network, network='cnn'",
    "baselines.ppo1.mlp_policy": "name the network, network='mlp'",
    "baselines.ppo1.pposgd_simple": "use learn of baselines.ppo1",
    "baselines.ppo1.run_atari": PPO1_COMMAND + "PongNoFrameskip-v4",
    "baselines.ppo1.run_humanoid": PPO1_COMMAND + "Humanoid-v4",
    "baselines.ppo1.run_mujoco": PPO1_COMMAND + "Reacher-v4",
    "baselines.ppo1.run_robotics": PPO1_COMMAND + "FetchReach-v4",
    "baselines.ppo2.microbatched_model": "nothing takes its place",
    "baselines.ppo2.model": "use Policy of baselines.common.policies",
    "baselines.ppo2.runner": "use Runner of baselines.common.runners and gae of "
    "baselines.common.returns",
}


# Missing names of modules that do exist here.
OWN_BOOL = "use argparse.BooleanOptionalAction"
MADE_BY_ID = "use make_vec_env of baselines.common.envs, which knows environments by id"
MOVED_NAMES = {
    "baselines.common": {
        "explained_variance": "use that of baselines.common.returns",
        "discount": "use n_step of baselines.common.returns",
        "boolean_flag": OWN_BOOL,
        "Dataset": MOVED["baselines.common.dataset"],
    },
    "baselines.common.atari_wrappers": {
        "ScaledFloatFrame": "models divide uint8 frames by 255 once, on their device",
        "LazyFrames": "the replay memory stores each frame once",
    },
    "baselines.common.cmd_util": {
        "arg_parser": "use argparse.ArgumentParser",
        "atari_arg_parser": "use common_arg_parser",
        "mujoco_arg_parser": "use common_arg_parser",
        "robotics_arg_parser": "use common_arg_parser",
        "make_mujoco_env": MADE_BY_ID,
        "make_robotics_env": MADE_BY_ID,
    },
    "baselines.common.distributions": {
        "make_pdtype": "use make_distribution",
        "CategoricalPdType": "use Categorical",
        "DiagGaussianPdType": "use DiagGaussian",
        "BernoulliPdType": "use Bernoulli",
        "MultiCategoricalPdType": "use MultiCategorical",
    },
    "baselines.common.misc_util": {
        "boolean_flag": OWN_BOOL,
        "pretty_eta": "use duration of baselines.common.amounts",
        "zipsame": "use zip(..., strict=True)",
        "EzPickle": "use gymnasium.utils.EzPickle",
        "RunningAvg": "nothing takes its place",
        "pickle_load": "files here are no pickles",
        "relatively_safe_pickle_dump": "use replace_file of "
        "baselines.common.saving.files",
    },
    "baselines.common.policies": {
        "build_policy": "use Policy",
        "PolicyWithValue": "use Policy",
    },
    "baselines.common.runners": {"AbstractEnvRunner": "use Runner"},
    "baselines.common.vec_env": {
        "CloudpickleWrapper": "SubprocVecEnv uses cloudpickle itself",
        "VecEnvObservationWrapper": "use VecEnvWrapper, with reset and step_wait",
    },
    "baselines.gail.adversary": {
        "TransitionClassifier": "use Adversary",
        "logit_bernoulli_entropy": "adversary_loss has it",
        "logsigmoid": "use keras.ops.log_sigmoid",
    },
}


def find_spec(name, path=None, target=None) -> None:
    """Called by Python's import for a module that no other finder has found.

    Raises:
        MovedModule: for one of ``MOVED``.
    """
    if name in MOVED:
        # The error has no attribute name: with it, "from baselines import her" would
        # take it for a missing attribute, and Python would raise an error of its own.
        # But without it, python -m shows a traceback.
        raise MovedModule(
            f"{name} of OpenAI Baselines is not here: {MOVED[name]}",
            name=name if sys.argv[:1] == ["-m"] else None,
        )


def register(name):
    """Raises UserTypeError, as networks are no longer registered by a decorator."""
    raise UserTypeError(
        f"networks are not registered, received the name {name!r}: give the function "
        "itself, network=function, or name it as --network=module:function; it has to "
        "return a Keras layer"
    )
