"""What the tests of optimizers and schedulers run; expected.json has PyTorch 2.15's results, in float64."""
STEPS, EPOCHS = 7, 24
PARAMETERS = [[[0.5, -1.0, 2.0], [0.25, 3.0, -0.75]], [[1.0, -2.0], [0.5, 0.1], [-0.3, 0.9]]]


def gradient(index, step):
    """Of parameter `index` in a step: smooth, of changing sign."""
    rows, columns = len(PARAMETERS[index]), len(PARAMETERS[index][0])
    return [[((7 * index + 3 * r + 5 * c + 2 * step) % 11 - 5) / 4 for c in range(columns)]
            for r in range(rows)]


def measure(epoch):
    """What ReduceLROnPlateau watches: falls, then stays."""
    return max(1.0, 5.0 - epoch)


def case_name(name, kwargs):
    return name + "".join(f" {k}={v}" for k, v in kwargs.items())


OPTIMIZERS = [
    ("SGD", {}), ("SGD", dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.5, maximize=True)),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True)),
    ("Adam", {}), ("Adam", dict(lr=0.1, weight_decay=0.1, amsgrad=True)),
    ("Adam", dict(betas=(0.7, 0.8), maximize=True)),
    ("AdamW", {}), ("AdamW", dict(lr=0.1, weight_decay=0.3, amsgrad=True)),
    ("Adamax", {}), ("Adamax", dict(lr=0.1, weight_decay=0.1)),
    ("NAdam", {}), ("NAdam", dict(lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)),
    ("RAdam", {}), ("RAdam", dict(lr=0.1, betas=(0.9, 0.8), weight_decay=0.1)),
    ("Adagrad", {}), ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)),
    ("Adadelta", {}), ("Adadelta", dict(rho=0.7, weight_decay=0.1)),
    ("RMSprop", {}), ("RMSprop", dict(momentum=0.5, centered=True, weight_decay=0.1)),
    ("Rprop", {}), ("Rprop", dict(lr=0.1, etas=(0.3, 1.5), step_sizes=(0.05, 0.2), maximize=True)),
    ("ASGD", {}), ("ASGD", dict(lr=0.1, t0=3, weight_decay=0.1, lambd=0.1)),
    ("Adafactor", {}), ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=1.5, eps=(1e-5, 1e-2))),
    ("Muon", {}), ("Muon", dict(lr=0.1, nesterov=False, adjust_lr_fn="match_rms_adamw")),
    ("Muon", dict(lr=0.1, adjust_lr_fn="spectral_unclamped")),
]
SCHEDULERS = [
    ("StepLR", dict(step_size=5)), ("MultiStepLR", dict(milestones=[3, 3, 9])), ("ConstantLR", {}),
    ("ConstantLR", dict(factor=0.5, total_iters=7)), ("LinearLR", {}),
    ("LinearLR", dict(start_factor=1.0, end_factor=0.1, total_iters=9)),
    ("ExponentialLR", dict(gamma=0.9)), ("PolynomialLR", dict(total_iters=9, power=2.0)),
    ("CosineAnnealingLR", dict(T_max=6, eta_min=0.01)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4)),
    ("CyclicLR",
     dict(base_lr=0.01, max_lr=0.2, step_size_up=2, step_size_down=5, mode="triangular2",
          cycle_momentum=False)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=3, mode="exp_range", gamma=0.9)),
    ("OneCycleLR", dict(max_lr=0.5, total_steps=30)),
    ("OneCycleLR", dict(max_lr=0.5, epochs=3, steps_per_epoch=8, three_phase=True, anneal_strategy="linear")),
    ("ReduceLROnPlateau", dict(patience=2, cooldown=1, min_lr=0.001)),
    ("ReduceLROnPlateau", dict(mode="max", factor=0.5, patience=3, threshold_mode="abs")),
]
