#!/usr/bin/env python3
"""Holds what `export --format onnx` writes against PyTorch, ONNX's checker and ONNX Runtime's optimizers.
usage: check_onnx.py expect MODEL_DIR FILE.npz     needs torch and transformers: 20 random batches and what PyTorch makes of them
       check_onnx.py check EXPORT_DIR FILE.npz     needs onnx, onnxruntime and sympy: prints a line, fails beyond 1e-5
MODEL_DIR is what was exported to EXPORT_DIR. The two commands may run in different environments."""
import hashlib
import json
import os
import sys
import tempfile

import numpy as np

MOST = 1e-5
PAIRS = [(batch, part) for batch in (1, 2, 3, 5) for part in (0.0, 0.05, 0.12, 0.25, 1.0)]  # parts of the most positions


def batches(config):
    """Ids, masks with padding at the end, and types: 20 pairs of batch and length; of multiple choice with three choices."""
    random = np.random.default_rng(1)
    choices = (3,) if config["architectures"] == ["BertForMultipleChoice"] else ()
    for batch, part in PAIRS:
        length = max(1, min(round(part * config["max_position_embeddings"]), config["max_position_embeddings"], 128 if batch > 1 else 512))
        rows = (batch, *choices)
        mask = (np.arange(length) < random.integers(1, length + 1, (*rows, 1))).astype(np.int64)
        mask[0] = 1
        yield {"input_ids": random.integers(0, config["vocab_size"], (*rows, length)),
               "attention_mask": mask,
               "token_type_ids": random.integers(0, config["type_vocab_size"], (*rows, length))}


def expect(model_dir, file):
    import torch
    import transformers

    config = json.load(open(os.path.join(model_dir, "config.json")))
    kind = getattr(transformers, config["architectures"][0])
    model = kind.from_pretrained(model_dir, attn_implementation="eager", dtype=torch.float32).eval()
    arrays = {}
    with torch.no_grad():
        for precision in ("f32", "f64"):
            model = model.double() if precision == "f64" else model
            for i, feed in enumerate(batches(config)):
                outputs = model(**{name: torch.from_numpy(value) for name, value in feed.items()})
                for name, value in outputs.items():
                    if value is not None:
                        arrays[f"{i}.{precision}.{name}"] = value.numpy()
                for name, value in feed.items():
                    arrays[f"{i}.in.{name}"] = value
    np.savez(file, **arrays)


def difference(session, expected, precision):
    """The greatest over all batches and outputs."""
    worst = 0.0
    names = [output.name for output in session.get_outputs()]
    for i in range(len(PAIRS)):
        feed = {input.name: expected[f"{i}.in.{input.name}"] for input in session.get_inputs()}
        for name, value in zip(names, session.run(names, feed)):
            wanted = expected[f"{i}.{precision}.{name}"]
            assert value.shape == wanted.shape, (name, value.shape, wanted.shape)
            worst = max(worst, float(np.abs(value - wanted).max()))
    return worst


def weights_hash(path, model):
    """As the metadata have it: of the bytes of all weights in the order of the file."""
    digest = hashlib.sha256()
    for tensor in model.graph.initializer:
        if tensor.data_type != 1 or not tensor.dims:  # constants are i64, or scalars
            continue
        if tensor.data_location == 1:
            place = {entry.key: entry.value for entry in tensor.external_data}
            with open(os.path.join(os.path.dirname(path), place["location"]), "rb") as data:
                data.seek(int(place["offset"]))
                digest.update(data.read(int(place["length"])))
        else:
            digest.update(tensor.raw_data)
    return digest.hexdigest()


def fusions(path, config, heads_gelu):
    """The optimized model's bytes, after its counts were compared."""
    from onnxruntime.transformers import optimizer

    optimized = optimizer.optimize_model(path, "bert", num_heads=config["num_attention_heads"],
                                         hidden_size=config["hidden_size"], opt_level=0)
    counts = {name: count for name, count in optimized.get_fused_operator_statistics().items() if count}
    layers = config["num_hidden_layers"]
    gelu = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "relu": None}[config["hidden_act"]]
    wanted = {"EmbedLayerNormalization": 1, "Attention": layers, "SkipLayerNormalization": 2 * layers}
    if gelu:
        wanted[gelu] = layers + heads_gelu
    got = {name: counts.get(name, 0) for name in wanted}
    assert got == wanted, f"fusions: expected {wanted}, got {got} of {counts}"
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "optimized.onnx")
        optimized.save_model_to_file(file)
        return open(file, "rb").read(), got


def check(export_dir, file):
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    path = os.path.join(export_dir, "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path, load_external_data=False)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata["weights_sha256"] == weights_hash(path, model), "weights_sha256"
    config = json.load(open(os.path.join(export_dir, "config.json")))
    heads_gelu = int(metadata["task"] in ("fill-mask", "pretraining"))
    expected = np.load(file)
    open_session = lambda what: onnxruntime.InferenceSession(what, providers=["CPUExecutionProvider"])
    plain = open_session(path)
    optimized, counts = fusions(path, config, heads_gelu)
    fused = open_session(optimized)
    figures = {f"{name} {precision}": difference(session, expected, precision)
               for name, session in (("plain", plain), ("fused", fused)) for precision in ("f32", "f64")}
    torch_itself = max(float(np.abs(expected[name] - expected[name.replace(".f32.", ".f64.")]).max())
                       for name in expected if ".f32." in name)
    print(f"{metadata['architecture']}, {config['num_hidden_layers']} layers, {config['hidden_act']}, {len(model.graph.node)} nodes, "
          f"{len({node.op_type for node in model.graph.node})} ops:", ", ".join(f"{name} {value:.1e}" for name, value in figures.items()),
          f"(PyTorch f32 to f64 {torch_itself:.1e}); fused", counts)
    worst = max(value for name, value in figures.items())
    assert worst <= MOST, f"expected at most {MOST}, got {worst}"


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("expect", "check"):
        sys.exit(__doc__)
    {"expect": expect, "check": check}[sys.argv[1]](*sys.argv[2:])
