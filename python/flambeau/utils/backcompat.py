"""Warnings of old behaviour: there are none."""
broadcast_warning_enabled = keepdim_warning_enabled = False
