"""What is known of the arms and their trials."""
