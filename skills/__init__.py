"""What the model may call: read skills return findings, propose skills return an action. Neither acts."""
