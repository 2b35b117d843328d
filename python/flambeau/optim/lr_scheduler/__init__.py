"""Learning rates that follow a schedule: every call of step() sets the rates of an optimizer's groups.

Most schedulers say how the rate changes from the step before, so that several can act on one optimizer.
"""
from .base import LRScheduler
from .combined import ChainedScheduler, SequentialLR
from .cycles import CyclicLR, OneCycleLR
from .factors import (ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, ExponentialLR, LambdaLR,
                      LinearLR, MultiplicativeLR, MultiStepLR, PolynomialLR, StepLR)
from .plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
           "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
           "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]

_LRScheduler = LRScheduler
