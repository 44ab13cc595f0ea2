"""How long a host rests: its pace, back-off after failures, an operator's overrides, and the proof afterwards."""
