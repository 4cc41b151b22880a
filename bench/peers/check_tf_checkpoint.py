#!/usr/bin/env python3
"""Compares a checkpoint of `export --format tf-checkpoint` with TensorFlow: it reads the tensors, saves them again with
SaveV2 and compares both files byte by byte, and compares every tensor with the model.safetensors that was exported.
usage, with the python of an environment that has tensorflow, numpy and safetensors:
  check_tf_checkpoint.py EXPORTED_DIR MODEL_DIR"""
import os, sys, tempfile
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


def read_safetensors(path):
    import json, struct
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], "<f4").reshape(t["shape"])
            for name, t in header.items()}


def google_name(name):
    """As in the table of transformers' converter of BERT's checkpoints."""
    path = name.split(".")
    leaf = path.pop()
    if name.startswith("cls.predictions.bias"):
        return "cls/predictions/output_bias", False
    for ours, theirs in (("cls.seq_relationship", "cls/seq_relationship/output_"), ("qa_outputs", "cls/squad/output_"),
                         ("classifier", "output_")):
        if name.startswith(ours):
            return theirs + ("weights" if leaf == "weight" else "bias"), False
    where = "/".join(path).replace("layer/", "layer_")
    if path[-1].endswith("_embeddings"):
        return where, False
    if path[-1] == "LayerNorm":
        return where + ("/gamma" if leaf == "weight" else "/beta"), False
    return where + ("/kernel" if leaf == "weight" else "/bias"), leaf == "weight"


def main(exported, model):
    prefix = tf.train.latest_checkpoint(exported)
    reader = tf.train.load_checkpoint(prefix)
    names = sorted(reader.get_variable_to_shape_map())
    tensors = [reader.get_tensor(name) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        again = os.path.join(folder, "again")
        tf.raw_ops.SaveV2(prefix=again, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
        for ending in (".index", ".data-00000-of-00001"):
            with open(prefix + ending, "rb") as a, open(again + ending, "rb") as b:
                assert a.read() == b.read(), f"{ending} differs from TensorFlow's"
    ours = read_safetensors(os.path.join(model, "model.safetensors"))
    for name, value in ours.items():
        google, transposed = google_name(name)
        stored = reader.get_tensor(google)
        assert np.array_equal(stored.T if transposed else stored, value), name
    rest = set(names) - {google_name(name)[0] for name in ours}
    assert rest == {"global_step"} and reader.get_tensor("global_step").dtype == np.int64, rest
    print(f"{prefix}: {len(names)} tensors, both files as TensorFlow writes them, all equal to {model}")


main(*sys.argv[1:])
