"""What every process needs: a clock that can be moved, a budget for one turn of the event loop, a bounded cache."""
