"""Several processes that train one policy: their exchange of values, who computes which prompts, how they start."""
