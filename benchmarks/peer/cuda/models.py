"""Training and inference steps of models on a GPU, eager and compiled: the same program for PyTorch and for this library.

    python models.py gpt2 resnet50          # PyTorch
    python -m flambeau models.py gpt2 ...   # this library

A step is zero_grad, forward under autocast to bfloat16, loss, backward, SGD; the median of several is shown, in ms of
events. "first" is the first compiled step in seconds of the host, "peak" the most memory in tensors, in MB.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config())
    tokens = torch.randint(0, 50257, (8, 512))
    return model, lambda m, x: m(input_ids=x, labels=x).loss, [tokens]


def bert():
    from transformers import BertConfig, BertForMaskedLM
    model = BertForMaskedLM(BertConfig())
    tokens = torch.randint(0, 30522, (16, 512))
    return model, lambda m, x: m(input_ids=x, labels=x).loss, [tokens]


def resnet(name, batch):
    def make():
        import torchvision
        model = getattr(torchvision.models, name)()
        return (model, lambda m, x, y: F.cross_entropy(m(x), y),
                [torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))])
    return make


def mlp():
    model = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Linear(1024, 1024), torch.nn.GELU())])
    return model, lambda m, x: m(x).square().mean(), [torch.randn(4096, 1024)]


MODELS = {"gpt2": gpt2, "bert": bert, "resnet50": resnet("resnet50", 64), "resnet18": resnet("resnet18", 16), "mlp": mlp}


def timed(step, count=20):
    for _ in range(3):
        step()
    times = []
    for _ in range(count):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def measure(name):
    torch.manual_seed(0)
    model, loss_of, inputs = MODELS[name]()
    model, inputs = model.cuda().train(), [x.cuda() for x in inputs]
    if name.startswith("resnet"):
        model = model.to(memory_format=torch.channels_last)
        inputs[0] = inputs[0].to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []

    def step_of(m):
        def step():
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(m, *inputs)
            loss.backward()
            optimizer.step()
            return loss
        return step

    row = {"name": name}
    torch.cuda.reset_peak_memory_stats()
    row["eager_ms"] = timed(step_of(model))
    row["eager_peak"] = torch.cuda.max_memory_allocated() >> 20
    losses.append(step_of(model)().item())
    compiled = torch.compile(model)
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    losses.append(step_of(compiled)().item())
    row["first_s"] = time.perf_counter() - start
    row["compile_ms"] = timed(step_of(compiled))
    row["compile_peak"] = torch.cuda.max_memory_allocated() >> 20
    row["losses"] = losses
    return row


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = True
    for name in sys.argv[1:] or MODELS:
        print(json.dumps(measure(name)), flush=True)
