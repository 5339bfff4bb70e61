"""May this change be made now? Pure rules over an action, a snapshot and the past; closed by default."""
