"""Engines for quantized operators: there are none."""
engine, supported_engines = "none", ["none"]
