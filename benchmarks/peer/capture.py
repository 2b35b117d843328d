"""What torch.compile of Python costs and gains. Usage: capture.py [NAME...]

python_call: a compiled x + 1 on 4 elements, from Python. bert_call: a compiled BERT of 12 tiny layers (width 32, 1 x 4 tokens) without gradients: nearly all
of it is the cost of calls. resnet50_train (4x3x224x224), vit_small_train (2x3x224x224) and bert_train (4 layers of width 256, 4 x 128 tokens): zero_grad,
forward, loss, backward and a step of SGD; the model is compiled. Models come from torchvision and transformers and are left out where those are missing.
"""
import torch
from measure import report, run


def python_call(name):
    x = torch.ones(4)
    compiled = torch.compile(lambda x: x + 1)
    report(name, lambda: x + 1, lambda: compiled(x), calls=1000)


def training(name, model, inputs, loss_of):
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(function):
        optimizer.zero_grad()
        loss_of(function(**inputs)).backward()
        optimizer.step()

    report(name, lambda: step(model), lambda: step(compiled), budget_s=8.0)


def image_model(name, build, batch):
    try:
        import torchvision
    except ImportError:
        return
    model = build(torchvision.models)
    target = torch.arange(batch)
    training(name, model, {"x": torch.randn(batch, 3, 224, 224)}, lambda y: torch.nn.functional.cross_entropy(y, target))


def vit_small(models):
    return models.VisionTransformer(image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536)


def bert(width, layers):
    import transformers

    config = transformers.BertConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=4 * width, vocab_size=8192)
    return transformers.BertForMaskedLM(config)


def bert_train(name):
    try:
        model = bert(256, 4)
    except ImportError:
        return
    tokens = torch.randint(0, 8192, (4, 128))
    training(name, model, {"input_ids": tokens, "labels": tokens}, lambda y: y.loss)


def bert_call(name):
    try:
        model = bert(32, 12).eval()
    except ImportError:
        return
    compiled, tokens = torch.compile(model), torch.randint(0, 8192, (1, 4))
    with torch.no_grad():
        report(name, lambda: model(tokens), lambda: compiled(tokens))


run({
    "python_call": python_call,
    "bert_call": bert_call,
    "resnet50_train": lambda name: image_model(name, lambda models: models.resnet50(), 4),
    "vit_small_train": lambda name: image_model(name, vit_small, 2),
    "bert_train": bert_train,
})
