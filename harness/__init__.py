"""The only hands: journal, gate, approval, execution, verification, memory."""
