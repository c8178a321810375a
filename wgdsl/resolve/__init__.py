"""The resolve step: a schedule as it is written -> the schedule that is meant, AST to AST (`extends`, options, `tune`)."""
