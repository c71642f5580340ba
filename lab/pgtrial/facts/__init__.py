"""What an arm is (collectors), and what that says about the fairness of the comparison (audit rules)."""
