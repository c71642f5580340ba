"""What happens between the plan of a study and its first trial: the load is rehearsed, rows and answers of the arms are
compared, planner statistics are set, and instructions are counted."""
