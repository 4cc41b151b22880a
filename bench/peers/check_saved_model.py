#!/usr/bin/env python3
"""Opens a SavedModel of `export --format saved-model` as TensorFlow's users do, and compares its outputs.

The figures that it is compared with come from PyTorch in float64, and are kept in a file, since PyTorch and TensorFlow
seldom share an environment:

  check_saved_model.py reference --model HF_DIRECTORY --output FIGURES.npz    needs torch, transformers
  check_saved_model.py golden --golden DIRECTORY --output FIGURES.npz         needs numpy; golden.json, golden.safetensors
  check_saved_model.py check --saved-model OUT/1 --figures FIGURES.npz        needs tensorflow

`check` uses four loaders: tf.saved_model.load, LoadSavedModel in C++ (which TensorFlow Serving calls), the Session loader
of TensorFlow 1, and saved_model_cli. Each is asked through both signatures, saved_model_cli for the first and the last
batch only, since it starts a process each time. Then TensorFlow saves the variables again, and the files are compared
byte by byte.
"""
import argparse
import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

INPUTS = ["input_ids", "input_mask", "segment_ids"]


# ------------------------------------------------------------------------------------------------ figures
# FIGURES.npz: N.input_ids, N.input_mask, N.segment_ids and N.OUTPUT for each batch N; NaN where there is no figure.
def with_probabilities(outputs, kind):
    logits = outputs.get("logits")
    if logits is not None and kind == "softmax":
        e = np.exp(logits - logits.max(-1, keepdims=True))
        outputs["probabilities"] = e / e.sum(-1, keepdims=True)
    if logits is not None and kind == "sigmoid":
        outputs["probabilities"] = 1 / (1 + np.exp(-logits))
    return outputs


def probabilities_of(config):
    """As the SavedModel has them: none for a regression and for masked words."""
    name = config["architectures"][0]
    if "Classification" not in name:
        return "none"
    if "Token" in name:
        return "softmax"
    labels, problem = len(config.get("id2label", {0: 0, 1: 0})), config.get("problem_type")
    if problem == "multi_label_classification":
        return "sigmoid"
    return "none" if problem == "regression" or (not problem and labels == 1) else "softmax"


def padded(rows, width):
    return np.array([list(row) + [0] * (width - len(row)) for row in rows], np.int32)


def batch_of(ids, types):
    width = max(map(len, ids))
    return {"input_ids": padded(ids, width), "input_mask": padded([[1] * len(row) for row in ids], width),
            "segment_ids": padded(types, width)}


def write_figures(path, batches):
    np.savez(path, **{f"{i}.{name}": array for i, batch in enumerate(batches) for name, array in batch.items()})
    print(f"{path}: {len(batches)} batches, outputs {sorted(set(batches[0]) - set(INPUTS))}")


def make_reference(args):
    import torch
    import transformers

    config = json.load(open(f"{args.model}/config.json"))
    kind = getattr(transformers, config["architectures"][0])
    model, loading = kind.from_pretrained(args.model, output_loading_info=True)
    model = model.double().eval()
    invented = {"pooler_output"} if any(key.startswith("pooler.") for key in loading["missing_keys"]) else set()
    rng, batches = np.random.default_rng(1), []
    longest = config["max_position_embeddings"]
    lengths = sorted({min(length, longest) for length in args.lengths})
    for size in args.batches:
        for length in lengths:
            counts = [length] + [int(rng.integers(2, length + 1)) for _ in range(size - 1)]
            ids = [rng.integers(0, config["vocab_size"], n).tolist() for n in counts]
            types = [(np.arange(n) >= n // 2).astype(int).tolist() for n in counts]
            batch = batch_of(ids, types)
            with torch.no_grad():
                out = model(input_ids=torch.tensor(batch["input_ids"]).long(),
                            attention_mask=torch.tensor(batch["input_mask"]),
                            token_type_ids=torch.tensor(batch["segment_ids"]).long())
            outputs = {k: v.numpy() for k, v in out.items() if k not in invented}
            outputs = with_probabilities(outputs, probabilities_of(config))
            padding = batch["input_mask"] == 0
            for name, value in outputs.items():  # nobody reads what stands for padding
                if value.shape[:2] == padding.shape and "relationship" not in name and value.ndim == (
                        2 if name in ("start_logits", "end_logits") else 3):
                    value[padding] = np.nan
            batches.append({**batch, **outputs})
    write_figures(args.output, batches)


def read_safetensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    types = {"F32": np.float32, "F64": np.float64}
    return {name: np.frombuffer(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]],
                                types[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in json.loads(data[8:8 + size]).items()
            if name != "__metadata__" and not name.startswith("grad.")}


def rows_at(shape, places, rows):
    out = np.full(shape, np.nan)
    for place, row in zip(places, rows):
        out[place] = row
    return out


def make_golden(args):
    golden, figures = json.load(open(f"{args.golden}/golden.json")), read_safetensors(f"{args.golden}/golden.safetensors")
    config = json.load(open(f"{args.golden}/config.json")) if os.path.exists(f"{args.golden}/config.json") else {}
    if "cases" in golden:  # rows of an encoder, one sequence at a time
        batches = []
        for i, case in enumerate(golden["cases"]):
            batch = batch_of([case["token_ids"]], [case["token_types"]])
            n = len(case["token_ids"])
            hidden = rows_at((1, n, len(figures[f"{i}.pooled"])), [(0, 0), (0, n - 1)],
                             [figures[f"{i}.first_row"], figures[f"{i}.last_row"]])
            batches.append({**batch, "last_hidden_state": hidden, "pooler_output": figures[f"{i}.pooled"][None]})
        return write_figures(args.output, batches)
    batch = batch_of(golden["token_ids"], golden["token_types"])
    size, width = batch["input_ids"].shape
    tokens = [(s, t) for s, row in enumerate(golden["token_ids"]) for t in range(len(row))]
    outputs = {}
    for name in ("logits", "start_logits", "end_logits"):
        if name in figures:
            rows = figures[name]
            is_by_token = len(rows) == len(tokens)
            outputs[name] = rows_at((size, width, *rows.shape[1:]), tokens, rows) if is_by_token else np.array(rows)
    if "masked_lm_logits" in figures:
        rows = figures["masked_lm_logits"]
        outputs["prediction_logits"] = rows_at((size, width, rows.shape[1]), [tuple(m[:2]) for m in golden["masked"]], rows)
        outputs["seq_relationship_logits"] = figures["next_sentence_logits"]
    write_figures(args.output, [{**batch, **with_probabilities(outputs, probabilities_of(config))}])


# ------------------------------------------------------------------------------------------------ loaders
# Each takes the directory and gives a function (signature, inputs) -> outputs by name.
def open_python(path):
    import tensorflow as tf

    model = tf.saved_model.load(path)
    return lambda signature, feeds: {
        k: v.numpy() for k, v in model.signatures[signature](**{k: tf.constant(v) for k, v in feeds.items()}).items()}


def open_session(path):
    import tensorflow as tf

    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], path)

    def ask(signature, feeds):
        d = meta.signature_def[signature]
        return session.run({k: v.name for k, v in d.outputs.items()}, {d.inputs[k].name: v for k, v in feeds.items()})

    ask.session = session
    return ask


class CApi:
    """LoadSavedModel in C++ through TensorFlow's C functions."""

    class Buffer(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("deallocator", ctypes.c_void_p)]

    class Output(ctypes.Structure):
        _fields_ = [("operation", ctypes.c_void_p), ("index", ctypes.c_int)]

    STRING, STRING_BYTES = 7, 24

    def __init__(self, path):
        import tensorflow as tf
        from tensorflow.core.protobuf import meta_graph_pb2

        folder = os.path.dirname(tf.__file__)
        self.libraries = [ctypes.CDLL(f"{folder}/{name}", mode=ctypes.RTLD_GLOBAL)
                          for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")]
        p, i, n, s = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
        self.status = self.function("TF_NewStatus", p)()
        self.graph = self.function("TF_NewGraph", p)()
        buffer, tags = self.Buffer(), (s * 1)(b"serve")
        load = self.function("TF_LoadSessionFromSavedModel", p, p, p, s, p, i, p, p, p)
        options = self.function("TF_NewSessionOptions", p)()
        self.session = load(options, None, path.encode(), tags, 1, self.graph, ctypes.byref(buffer), self.status)
        self.check()
        self.meta = meta_graph_pb2.MetaGraphDef.FromString(ctypes.string_at(buffer.data, buffer.length))
        self.allocate = self.function("TF_AllocateTensor", p, i, p, i, n)
        self.data = self.function("TF_TensorData", p, p)

    def function(self, name, result, *arguments):
        for library in self.libraries:
            try:
                found = getattr(library, name)
                found.restype, found.argtypes = result, arguments
                return found
            except AttributeError:
                pass
        raise RuntimeError(f"{name}: in none of TensorFlow's libraries")

    def check(self):
        if self.function("TF_GetCode", ctypes.c_int, ctypes.c_void_p)(self.status):
            raise RuntimeError(self.function("TF_Message", ctypes.c_char_p, ctypes.c_void_p)(self.status).decode())

    def output(self, info):
        name, index = info.name.split(":")
        find = self.function("TF_GraphOperationByName", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        return self.Output(find(self.graph, name.encode()), int(index))

    def tensor(self, value):
        dims = (ctypes.c_int64 * value.ndim)(*value.shape)
        if value.dtype != object:
            tensor = self.allocate(3, dims, value.ndim, value.nbytes)  # DT_INT32
            ctypes.memmove(self.data(tensor), value.ctypes.data, value.nbytes)
            return tensor
        tensor = self.allocate(self.STRING, dims, value.ndim, self.STRING_BYTES * value.size)
        begin = self.function("TF_StringInit", None, ctypes.c_void_p)
        copy = self.function("TF_StringCopy", None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
        for i, text in enumerate(value):
            place = self.data(tensor) + i * self.STRING_BYTES
            begin(place)
            copy(place, text, len(text))
        return tensor

    def array(self, tensor):
        p = ctypes.c_void_p
        rank, dim = self.function("TF_NumDims", ctypes.c_int, p), self.function("TF_Dim", ctypes.c_int64, p, ctypes.c_int)
        size = self.function("TF_TensorByteSize", ctypes.c_size_t, p)
        values = np.frombuffer(ctypes.string_at(self.data(tensor), size(tensor)), np.float32)
        return values.reshape([dim(tensor, i) for i in range(rank(tensor))])

    def __call__(self, signature, feeds):
        d, p, i = self.meta.signature_def[signature], ctypes.c_void_p, ctypes.c_int
        names = list(d.outputs)
        inputs = (self.Output * len(feeds))(*[self.output(d.inputs[k]) for k in feeds])
        values = (p * len(feeds))(*[self.tensor(v) for v in feeds.values()])
        outputs, results = (self.Output * len(names))(*[self.output(d.outputs[k]) for k in names]), (p * len(names))()
        run = self.function("TF_SessionRun", None, p, p, p, p, i, p, p, i, p, i, p, p)
        run(self.session, None, inputs, values, len(feeds), outputs, results, len(names), None, 0, None, self.status)
        self.check()
        return {k: self.array(t) for k, t in zip(names, results)}


def open_command(path):
    def ask(signature, feeds):
        with tempfile.TemporaryDirectory() as work:
            command = [f"{os.path.dirname(sys.executable)}/saved_model_cli", "run", "--dir", path, "--tag_set", "serve",
                       "--signature_def", signature, "--outdir", work, "--overwrite"]
            if "examples" in feeds:
                command += ["--input_examples", f"examples={json.dumps(feeds['lists'])}"]
            else:
                for k, v in feeds.items():
                    np.save(f"{work}/in_{k}.npy", v)
                command += ["--inputs", ";".join(f"{k}={work}/in_{k}.npy" for k in feeds)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr.strip().splitlines()[-1])
            return {f[:-4]: np.load(f"{work}/{f}") for f in os.listdir(work) if not f.startswith("in_")}

    return ask


# ------------------------------------------------------------------------------------------------ check
def example_lists(batch):
    counts = batch["input_mask"].sum(1)
    return [{name: batch[name][i, :n].tolist() for name in INPUTS} for i, n in enumerate(counts)]


def serialized(lists):
    import tensorflow as tf

    def feature(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    return np.array([tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in one.items()}))
                     .SerializeToString() for one in lists], object)


def read_figures(path):
    file, batches = np.load(path), {}
    for key in file.files:
        number, name = key.split(".", 1)
        batches.setdefault(int(number), {})[name] = file[key]
    return [batches[i] for i in sorted(batches)]


def difference(got, batch):
    """The greatest one over all outputs that have figures; None if an output is not there or of another shape."""
    worst = 0.0
    for name in set(batch) - set(INPUTS):
        if name not in got or got[name].shape != batch[name].shape or not np.isfinite(got[name]).all():
            print(f"  {name}: expected shape {batch[name].shape}, got {got[name].shape if name in got else 'none'}")
            return None
        known = ~np.isnan(batch[name])
        worst = max(worst, float(np.abs(got[name][known] - batch[name][known]).max()))
    return worst


def check_resaved(path, session):
    with tempfile.TemporaryDirectory() as work:
        session.run("save/done:0", {"save/filename:0": f"{work}/variables"})
        for name in ("variables.index", "variables.data-00000-of-00001"):
            if open(f"{work}/{name}", "rb").read() != open(f"{path}/variables/{name}", "rb").read():
                return f"{name} differs"
    return "the same bytes"


def check(args):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    tf.get_logger().setLevel("ERROR")
    path, batches, good = args.saved_model, read_figures(args.figures), True
    print(f"TensorFlow {tf.__version__}, {path}, {len(batches)} batches")
    session = open_session(path)
    loaders = [("tf.saved_model.load", open_python(path)), ("LoadSavedModel in C++", CApi(path)),
               ("Session loader", session), ("saved_model_cli", open_command(path))]
    for name, ask in loaders:
        for signature in ("serving_default", "examples"):
            some = batches if name != "saved_model_cli" else batches[:1] + batches[1:][-1:]
            found = []
            for batch in some:
                feeds = {k: batch[k] for k in INPUTS}
                if signature == "examples":
                    lists = example_lists(batch)
                    feeds = {"examples": serialized(lists)}
                    if name == "saved_model_cli":
                        feeds["lists"] = lists
                found.append(difference(ask(signature, feeds), batch))
            ok = None not in found and max(found) <= args.tolerance
            good &= ok
            print(f"  {name:22} {signature:16} {len(some):3} batches  "
                  f"{'-' if None in found else format(max(found), '.1e')}  {'ok' if ok else 'WRONG'}")
    resaved = check_resaved(path, session.session)
    message = open(f"{path}/saved_model.pb", "rb").read()
    again = saved_model_pb2.SavedModel.FromString(message).SerializeToString(deterministic=True)
    good &= resaved == "the same bytes" and again == message
    print(f"  variables saved again: {resaved}; saved_model.pb serialized again: "
          f"{'the same bytes' if again == message else 'differs'}")
    print(f"  variables listed: {len(tf.saved_model.load(path).variables)}, "
          f"in the checkpoint: {len(tf.train.list_variables(f'{path}/variables/variables'))}")
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("reference")
    one.add_argument("--model", required=True)
    one.add_argument("--output", required=True)
    one.add_argument("--batches", type=int, nargs="+", default=[1, 2, 3, 5])
    one.add_argument("--lengths", type=int, nargs="+", default=[4, 16, 40, 100, 250])
    one.set_defaults(run=make_reference)
    one = commands.add_parser("golden")
    one.add_argument("--golden", required=True)
    one.add_argument("--output", required=True)
    one.set_defaults(run=make_golden)
    one = commands.add_parser("check")
    one.add_argument("--saved-model", required=True)
    one.add_argument("--figures", required=True)
    one.add_argument("--tolerance", type=float, default=1e-5)
    one.set_defaults(run=check)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
