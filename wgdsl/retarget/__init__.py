"""retarget: a Hopper schedule as an Ampere one, by rule, and what became of each of its directives."""
