"""The stack's processes: started, known again, kept alive, restarted one at a time, ended by their own ids."""
