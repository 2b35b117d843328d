"""A ResNet learns the handwritten digits, eagerly and compiled, in Python. The network and the data are those of digits.cpp.

Usage: digits.py [--epochs N] [--device cuda] [--plot FILE.png]
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils.data import DataLoader, TensorDataset, random_split

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Identity()
        if stride != 1 or into != out:
            self.shortcut = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet():
    layers = [nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for width in (16, 32, 64):
        layers += [Block(channels, width, 1 if width == channels else 2), Block(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def load(seed):
    """Four fifths of the images to learn from, one fifth to test."""
    rows = [[int(v) for v in line.split(",")] for line in (Path(__file__).parent / "data/digits.csv").read_text().split()]
    table = torch.tensor(rows)
    images, labels = table[:, :64].reshape(-1, 1, 8, 8) / 16, table[:, 64]
    count = len(labels) * 4 // 5
    return random_split(TensorDataset(images, labels), [count, len(labels) - count], torch.Generator().manual_seed(seed))


def train(how, data, epochs, compiled, device):
    """Returns the mean loss of each epoch, the model, and the seconds of each step."""
    torch.manual_seed(0)
    model = resnet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    forward = torch.compile(model) if compiled else model
    losses, seconds = [], []
    batches = DataLoader(data, batch_size=64, shuffle=True, drop_last=True,
                         generator=torch.Generator().manual_seed(1), pin_memory=device == "cuda")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(batches))
    progress = tqdm(total=epochs * len(batches), desc=how, file=sys.stdout) if tqdm and sys.stdout.isatty() else None
    for _ in range(epochs):
        total = 0.0
        for images, labels in batches:
            start = time.perf_counter()
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = F.cross_entropy(forward(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            seconds.append(time.perf_counter() - start)
            if progress:
                progress.update()
                progress.set_postfix(loss=f"{loss.item():.4f}")
        losses.append(total / len(batches))
    if progress:
        progress.close()
    return losses, model, seconds


@torch.no_grad()
def accuracy(model, data, device):
    """Percent of the images whose highest logit is their digit's."""
    model.eval()
    images, labels = (t.to(device) for t in next(iter(DataLoader(data, batch_size=len(data)))))
    return 100 * (model(images).argmax(1) == labels).float().mean().item()


def plot(file, losses):
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    for how, values in losses.items():
        pyplot.plot(range(1, len(values) + 1), values, label=how, linestyle="--" if how == "compiled" else "-")
    pyplot.xlabel("epoch")
    pyplot.ylabel("mean loss")
    pyplot.yscale("log")
    pyplot.legend()
    pyplot.savefig(file)
    print(f"losses: {file}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--plot", metavar="FILE.png")
    options = parser.parse_args()
    data, test = load(seed=0)
    losses, models, seconds = {}, {}, {}
    for how in ("eager", "compiled"):
        losses[how], models[how], seconds[how] = train(how, data, options.epochs, how == "compiled",
                                                        options.device)
    print(f"{'':24}{'eager':>12}{'compiled':>12}{'difference':>14}")
    for epoch, (a, b) in enumerate(zip(losses["eager"], losses["compiled"]), 1):
        print(f"{f'loss of epoch {epoch}':24}{a:12.6f}{b:12.6f}{abs(a - b):14.2e}")
    scores = [accuracy(models[how], test, options.device) for how in models]
    print(f"{'test accuracy, %':24}{scores[0]:12.2f}{scores[1]:12.2f}")
    medians = [1000 * statistics.median(seconds[how]) for how in seconds]
    print(f"{'step, median, ms':24}{medians[0]:12.2f}{medians[1]:12.2f}")
    print(f"{'first step, ms':24}{1000 * seconds['eager'][0]:12.2f}{1000 * seconds['compiled'][0]:12.2f}")
    if options.plot:
        plot(options.plot, losses)
    largest = max(abs(a - b) for a, b in zip(losses["eager"], losses["compiled"]))
    print(f"python demo: accuracy {scores[1]:.2f} %, largest loss difference {largest:.2e}, "
          f"compiled/eager {medians[1] / medians[0]:.3f}, first step {1000 * seconds['compiled'][0]:.0f} ms")


if __name__ == "__main__":
    main()
