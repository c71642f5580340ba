"""What is known of the arms and their trials, and what that says about fairness."""
