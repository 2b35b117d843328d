"""Training and inference steps of models on a GPU, eager and compiled: the same program for PyTorch and for this library.

    python models.py gpt2 resnet50          # PyTorch
    python -m flambeau models.py gpt2 ...   # this library
    ... --modes=default,reduce-overhead gpt2   # modes of torch.compile, in place of "default" alone

A step is zero_grad, forward under autocast to bfloat16, loss, backward, SGD; the median of several is shown, in ms of
events. "first" is the first compiled step in seconds of the host, "peak" the most memory in tensors, in MB, "host" what
a step takes until the host is done with it, in ms.
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


def host_ms(step, count=10):
    """From the call to the return, without a wait in between."""
    times = []
    for _ in range(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def measure(name, modes):
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
    row["eager_host"] = host_ms(step_of(model))
    for mode in modes:
        key = "compile" if mode == "default" else mode
        torch.compiler.reset()
        optimizer.zero_grad()
        torch.cuda.empty_cache()
        compiled = torch.compile(model, mode=mode)
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        losses.append(step_of(compiled)().item())
        row["first_s" if key == "compile" else f"{key}_first_s"] = time.perf_counter() - start
        row[f"{key}_ms"] = timed(step_of(compiled))
        row[f"{key}_host"] = host_ms(step_of(compiled))
        row[f"{key}_peak"] = torch.cuda.max_memory_allocated() >> 20
        row[f"{key}_reserved"] = torch.cuda.memory_reserved() >> 20
    row["losses"] = losses
    return row


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = True
    modes, names = ["default"], []
    for argument in sys.argv[1:]:
        if argument.startswith("--modes="):
            modes = argument.removeprefix("--modes=").split(",")
        else:
            names.append(argument)
    for name in names or MODELS:
        print(json.dumps(measure(name, modes)), flush=True)
