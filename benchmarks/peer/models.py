"""Training steps: zero_grad, forward, loss, backward, optimiser step. Usage: models.py [NAME...]

gpt_small_train: 4 layers of width 256 with 4 heads (layer norm first, gelu by tanh, MLP of 4 x 256, no dropout), vocabulary 8192, learnt positions,
separate output matrix without bias; 4 x 256 tokens; AdamW, learning rate 3e-4.
resnet18_train: ResNet-18 for 1000 classes on 4x3x224x224; SGD, learning rate 0.01, momentum 0.9.
The compiled step compiles the model and its loss, as PyTorch's users do; the optimiser is PyTorch's default.
"""
import torch
import torch.nn.functional as F
from measure import report, run
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(self.norm_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.contract(F.gelu(self.expand(self.norm_mlp(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary=8192, context=256, width=256, heads=4, layers=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.shape[1])
        logits = self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(positions))))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Residual(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.stages = nn.Sequential(*(nn.Sequential(Residual(a, b, s), Residual(b, b, 1)) for a, b, s in stages))
        self.classifier = nn.Linear(512, 1000)

    def forward(self, images, labels):
        features = self.stages(self.stem(images))
        return F.cross_entropy(self.classifier(features.mean((2, 3))), labels)


def step_of(model, optimizer, batch):
    def step():
        optimizer.zero_grad()
        model(*batch).backward()
        optimizer.step()
    return step


def training(make_model, make_optimizer, make_batch):
    def benchmark(name):
        batch = make_batch()
        eager, compiled = make_model(), make_model()
        report(name, step_of(eager, make_optimizer(eager.parameters()), batch),
               step_of(torch.compile(compiled), make_optimizer(compiled.parameters()), batch), budget_s=8)
    return benchmark


run({
    "gpt_small_train": training(Gpt, lambda p: torch.optim.AdamW(p, lr=3e-4),
                                lambda: (torch.randint(8192, (4, 256)), torch.randint(8192, (4, 256)))),
    "resnet18_train": training(ResNet18, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
                               lambda: (torch.randn(4, 3, 224, 224), torch.randint(1000, (4,)))),
})
