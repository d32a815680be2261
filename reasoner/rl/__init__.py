"""The learning algorithms: advantages, losses, weights and the learner that applies them."""
